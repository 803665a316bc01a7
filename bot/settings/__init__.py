"""The settings, and the only reader of the environment. Secrets are SecretStr and never leave this object as text.

A setting is a field of its topic's class, with its variable, its bounds and a description that stands in error messages
and, word for word, in the table of docs/operations.md.
"""

from bot.settings.answering import DEFAULT_MODEL
from bot.settings.loading import Settings, load_settings

__all__ = ["DEFAULT_MODEL", "Settings", "load_settings"]
