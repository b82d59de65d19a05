"""`memoryd doctor`: does it work, and if not, where does it fail?"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from client.checkup import examine
from client.findings import Finding
from client.output import emit, json_option, visible
from client.settings import load


@click.command()
@json_option
def command(as_json: bool) -> None:
    """Check the installation: write, read, find and delete a page in a scratch project, and name every part.

    Ends with 1 when a check fails, with 3 when the server is not there, with 4 when it does not accept the token.
    """
    findings: list[Finding] = []
    for finding in examine(load()):
        findings.append(finding)
        if not as_json:
            mark = (
                click.style("ok  ", fg="green") if finding.is_ok else click.style("FAIL", fg="red", bold=True)
            )
            click.echo(f"{mark}  {finding.check:<16} {visible(finding.detail)}")
    is_ok = all(finding.is_ok for finding in findings)
    report = {
        "ok": is_ok,
        "checks": [{"check": f.check, "ok": f.is_ok, "detail": f.detail} for f in findings],
    }
    emit(report, as_json=as_json, text=lambda: click.echo("All is well." if is_ok else "Something is wrong."))
    sys.exit(_exit_code(findings))


def _exit_code(findings: Sequence[Finding]) -> int:
    """What keeps the server from being asked says more than what it said."""
    codes = [finding.exit_code for finding in findings if not finding.is_ok]
    return next((code for code in codes if code != 1), 1) if codes else 0
