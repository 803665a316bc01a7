"""What the SDK raises, as this package's errors: sentences for users, and the setting that an operator looks at."""

from __future__ import annotations

import math
import re
import time
from contextlib import contextmanager
from email.utils import mktime_tz, parsedate_tz
from typing import TYPE_CHECKING, Final

import anthropic
import httpx2

from bot.errors import (
    LanguageModelError,
    ModelBusyError,
    ModelContextError,
    ModelMisconfiguredError,
    ModelRefusedError,
    ModelUnavailableError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

KEY_SETTING: Final = "ANTHROPIC_API_KEY"
URL_SETTING: Final = "ANTHROPIC_BASE_URL"
MODEL_SETTING: Final = "FOOTNOTE_MODEL"

_LONGEST_RETRY_AFTER = 8.0
"""Seconds. A server that wants us to wait longer is busy; nobody is kept waiting silently."""
_TOO_LONG = re.compile(r"too long|too large|context (?:size|length|window)|exceed_context", re.IGNORECASE)
"""Matched against messages, as no server names a code for it."""
_FOR_OPERATORS: Final = (
    ({401}, {"authentication_error"}, "rejected the key", KEY_SETTING),
    ({402}, {"billing_error"}, "wants its bill looked at", f"the account behind {KEY_SETTING}"),
    ({403}, {"permission_error"}, "gave no permission", f"{KEY_SETTING} and {MODEL_SETTING}"),
    ({404}, {"not_found_error"}, "was not found", f"{MODEL_SETTING} and {URL_SETTING}"),
    ({400, 405, 422}, {"invalid_request_error"}, "did not accept the request", f"{MODEL_SETTING} and {URL_SETTING}"),
)
"""Statuses, types, what happened, what to check."""


@contextmanager
def translating(key: str) -> Iterator[None]:
    """Turn what the SDK raises into this package's errors; an error that quotes `key` is not chained."""

    def cause(error: Exception) -> Exception | None:
        return None if key and key in str(error) else error

    try:
        yield
    except anthropic.APIStatusError as error:
        raise _from_status(error) from cause(error)
    except (TimeoutError, anthropic.APITimeoutError) as error:
        msg = "The language model did not answer in time. Please ask again."
        raise ModelUnavailableError(msg) from cause(error)
    except anthropic.APIConnectionError as error:
        msg = "The language model cannot be reached. Please ask again in a minute."
        raise ModelUnavailableError(msg) from cause(error)
    except (anthropic.AnthropicError, httpx2.HTTPError, httpx2.StreamError, ValueError) as error:
        # HTTP faults in mid-stream, and events that are no JSON or no UTF-8.
        raise cut_off() from cause(error)
    except TypeError as error:
        if "authentication method" not in str(error):
            raise
        raise no_key() from cause(error)


def _from_status(error: anthropic.APIStatusError) -> LanguageModelError:
    """An error in mid-stream has status 200, so the type counts as much as the status."""
    status, kind = error.status_code, str(error.type or "")
    if status in {429, 529} or kind in {"rate_limit_error", "overloaded_error"}:
        msg = "The language model is overloaded right now. Please ask again in a minute."
        return ModelBusyError(msg, retry_after=_retry_after(error.response))
    if status == 413 or (status in {200, 400, 422} and _TOO_LONG.search(str(error))):
        return too_long()
    for statuses, kinds, what, where in _FOR_OPERATORS:
        if status in statuses or kind in kinds:
            return _misconfigured(what, where)
    msg = "The language model's server has a fault. Please ask again in a minute."
    return ModelUnavailableError(msg)


async def refuse_long_waits(response: httpx2.Response) -> None:
    """The SDK waits as long as `retry-after` says, be it an hour; its own header for "do not retry" prevents that."""
    if response.status_code >= 400 and (_retry_after(response) or 0) > _LONGEST_RETRY_AFTER:
        response.headers["x-should-retry"] = "false"


def _retry_after(response: httpx2.Response) -> float | None:
    """Seconds, from `retry-after-ms`, or `retry-after` in seconds or as a date (RFC 9110, section 10.2.3)."""
    for header, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = response.headers.get(header)
        if value is None:
            continue
        date = parsedate_tz(value)
        try:
            seconds = float(value) * scale
        except ValueError:
            if date is None:
                continue
            seconds = mktime_tz(date) - time.time()
        if math.isfinite(seconds):
            return max(seconds, 0.0)
    return None


def names_model(body: object, model: str) -> bool:
    """Is a 404 about the model, not about the route? Anthropic's shape, or a message that names the model."""
    match body:
        case {"type": "error", "error": {"type": "not_found_error"}}:
            return True
        case {"error": {"message": str(message)}}:
            return model in message and "/models" not in message
        case _:
            return False


def _misconfigured(what: str, where: str) -> ModelMisconfiguredError:
    return ModelMisconfiguredError(f"The language model {what}. Whoever runs this bot should check {where}.")


def no_key() -> ModelMisconfiguredError:
    """There is none, or none that can be sent."""
    return _misconfigured("has no usable key", KEY_SETTING)


def not_an_api() -> ModelMisconfiguredError:
    """Something else answers there."""
    return _misconfigured("is not at the address given", URL_SETTING)


def cut_off() -> ModelUnavailableError:
    """The answer has no end."""
    return ModelUnavailableError("The language model's answer broke off. Please ask again.")


def refused() -> ModelRefusedError:
    """The model declined."""
    return ModelRefusedError("The language model declined to answer. Please ask in other words.")


def too_long() -> ModelContextError:
    """The prompt, or prompt and answer, do not fit."""
    return ModelContextError("The question and its passages are too long for the language model. Please ask for less.")
