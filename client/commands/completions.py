"""`memoryd completions`: what a shell needs to complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from client.output import emit, json_option

#: What click looks for in the environment when the shell asks it.
_VARIABLE = "_MEMORYD_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@json_option
@click.pass_context
def command(ctx: click.Context, shell: str, as_json: bool) -> None:
    """Print the completion script of SHELL.

    \b
    bash: echo 'eval "$(memoryd completions bash)"' >> ~/.bashrc
    zsh:  echo 'eval "$(memoryd completions zsh)"' >> ~/.zshrc
    fish: memoryd completions fish > ~/.config/fish/completions/memoryd.fish
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise click.ClickException(f"nothing is known of {shell}")
    made = kind(ctx.find_root().command, {}, "memoryd", _VARIABLE)
    script = made.source_template % made.source_vars()
    emit({"shell": shell, "script": script}, as_json=as_json, text=lambda: click.echo(script))
