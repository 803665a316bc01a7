"""Everything that can go wrong in `bot`.

    BotError                       the base; `str(error)` is a sentence that a user may read
    ├── SettingsError              a setting is missing or broken; names it, its shape and what is allowed
    ├── QuestionSetError           a question set for the evaluation is broken; names the file and the line
    └── LanguageModelError         the language model could not answer
        ├── ModelMisconfiguredError    bad key, unknown model, no permission: an operator must act
        ├── ModelBusyError             overloaded or rate-limited; `retry_after` seconds when the server told
        ├── ModelUnavailableError      no connection, a cut or stalled stream, a server fault
        ├── ModelRefusedError          the model declined to answer
        └── ModelContextError          the prompt is longer than the model reads

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
