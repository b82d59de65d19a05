"""What a call used, in tokens."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Tokens as the provider counts them."""

    #: All that went in, cached ones too.
    input_tokens: int = 0
    #: All that came out, hidden reasoning too.
    output_tokens: int = 0
    #: Of the input, what the provider read from its cache.
    cached_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
        )


NOTHING = Usage()
