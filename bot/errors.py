"""Everything that can go wrong in `bot`.

    BotError                       the base; `str(error)` is a sentence that a user may read
    ├── SettingsError              a setting is missing or broken; names it, its shape and what is allowed
    ├── QuestionSetError           a question set for the evaluation is broken; names the file and the line
    ├── LanguageModelError         the language model could not answer
    │   ├── ModelMisconfiguredError    bad key, unknown model, no permission: an operator must act
    │   ├── ModelBusyError             overloaded or rate-limited; `retry_after` seconds when the server told
    │   ├── ModelUnavailableError      no connection, a cut or stalled stream, a server fault
    │   ├── ModelRefusedError          the model declined to answer
    │   └── ModelContextError          the prompt is longer than the model reads
    ├── StateError                 the state (claims, conversations, history, jobs) could not be read or written
    │   ├── StateUnavailableError      no connection, too slow, or the server is starting: it passes by itself
    │   ├── StateMisconfiguredError    bad address, password or certificate, or in use by another process
    │   └── MalformedStateError        a stored value cannot be read; whoever meets it skips and counts it
    ├── LeaseLostError             another process took over what this one was answering: stop, post nothing more
    └── PlatformError              the chat platform did not take or give something
        ├── PlatformBusyError          rate-limited; `retry_after` seconds when the platform told
        └── PlatformRefusedError       it will not, however often we ask (no permission, a deleted channel)

The foreign exception is chained for the log; its text never reaches a user.
"""

from __future__ import annotations


class BotError(Exception):
    """Base of the tree."""


class SettingsError(BotError):
    """A setting is missing or broken."""


class QuestionSetError(BotError):
    """A question set for the evaluation is missing or malformed."""


class LanguageModelError(BotError):
    """The language model could not answer."""


class ModelMisconfiguredError(LanguageModelError):
    """Bad key, unknown model or no permission."""


class ModelBusyError(LanguageModelError):
    """Overloaded or rate-limited, retries included."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        """Keep `retry_after`, seconds, when the server told it."""
        super().__init__(message)
        self.retry_after = retry_after


class ModelUnavailableError(LanguageModelError):
    """No connection, a cut or stalled stream, or a server fault."""


class ModelRefusedError(LanguageModelError):
    """The model declined to answer."""


class ModelContextError(LanguageModelError):
    """The prompt is longer than the model reads."""


class StateError(BotError):
    """The state could not be read or written."""


class StateUnavailableError(StateError):
    """No connection, too slow, or the server is starting."""


class StateMisconfiguredError(StateError):
    """Bad address, password or certificate, or in use by another process."""


class MalformedStateError(StateError):
    """A stored value cannot be read."""


class LeaseLostError(BotError):
    """Another process took over what this one was answering."""


class PlatformError(BotError):
    """The chat platform did not take or give something."""


class PlatformBusyError(PlatformError):
    """The platform wants fewer requests."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        """Keep `retry_after`, seconds, when the platform told it."""
        super().__init__(message)
        self.retry_after = retry_after


class PlatformRefusedError(PlatformError):
    """The platform will not, however often we ask."""
