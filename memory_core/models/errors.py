"""What can go wrong with a provider: fixed phrases, never a vendor's words, a prompt or a key."""

from __future__ import annotations

from memory_core.errors import CoreError
from memory_core.models.usage import NOTHING, Usage


class ProviderError(CoreError):
    """The provider did not answer as it should."""

    code = "model_failed"
    #: Whether the same request may succeed later.
    can_retry = False

    def __init__(
        self,
        message: str | None = None,
        *,
        retry_after_seconds: float | None = None,
        usage: Usage = NOTHING,
    ) -> None:
        super().__init__(message)
        #: How long the provider asks to be left alone.
        self.retry_after_seconds = retry_after_seconds
        #: Tokens that were spent all the same.
        self.usage = usage


class Cancelled(ProviderError):
    """The call was cancelled."""

    code = "model_cancelled"


class Unauthorized(ProviderError):
    """The provider does not accept the API key, or the key may not use this model; check api_key_file under [models]."""

    code = "model_unauthorized"


class OutOfCredit(ProviderError):
    """The account at the provider has no credit left; nothing is answered until it is topped up."""

    code = "model_out_of_credit"


class Rejected(ProviderError):
    """The provider rejects the request as it is; the model may not take one of its options."""

    code = "model_rejected"


class NoSuchModel(ProviderError):
    """The provider knows no such model, or nothing at this address; check model and base_url under [models]."""

    code = "model_not_found"


class TooLong(ProviderError):
    """The prompt is longer than the model or the provider takes."""

    code = "model_prompt_too_long"


class Refused(ProviderError):
    """The model, or a filter of its provider, refused to answer."""

    code = "model_refused"


class AnswerTooLong(ProviderError):
    """The answer went past its limit and was cut off."""

    code = "model_answer_too_long"


class BadAnswer(ProviderError):
    """The model answered with nothing, or not in the form that was asked for, also after it was shown the fault."""

    code = "model_bad_answer"
    can_retry = True


class Malformed(ProviderError):
    """The provider's answer is not what its interface promises; check base_url under [models]."""

    code = "model_malformed"
    can_retry = True


class WrongDimensions(ProviderError):
    """The provider's vectors are not as long as the others; check embed_model and embed_dimensions under [models]."""

    code = "model_wrong_dimensions"


class RateLimited(ProviderError):
    """The provider asks for fewer requests."""

    code = "model_rate_limited"
    can_retry = True


class Overloaded(ProviderError):
    """The provider is overloaded or has a fault of its own."""

    code = "model_overloaded"
    can_retry = True


class Unreachable(ProviderError):
    """The provider cannot be reached, or the connection was cut."""

    code = "model_unreachable"
    can_retry = True


class TimedOut(ProviderError):
    """The provider did not answer in time."""

    code = "model_timed_out"
    can_retry = True


#: Errors after which the same request is tried again within one call.
PASSING = (RateLimited, Overloaded, Unreachable)


def all_errors() -> tuple[type[ProviderError], ...]:
    """Each kind of error there is, for whoever gives each its own answer."""
    return tuple(ProviderError.__subclasses__())
