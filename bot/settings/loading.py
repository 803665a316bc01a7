"""All settings in one value, read from the environment; the only reader of it."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from bot.errors import SettingsError
from bot.settings.admission import AdmissionSettings
from bot.settings.answering import AnsweringSettings
from bot.settings.library import LibrarySettings
from bot.settings.running import RunningSettings
from bot.settings.turns import TurnSettings


# The last comes first in lists of fields.
class Settings(RunningSettings, AdmissionSettings, TurnSettings, AnsweringSettings, LibrarySettings, BaseSettings):
    """Everything an operator can set, from environment variables or a `.env` file in the folder of the start."""

    model_config = SettingsConfigDict(
        env_file=".env",
        env_file_encoding="utf-8",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _without_blanks(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Blanks and line ends around a value come from copying; a value of nothing else is none."""
        stripped = {name: value.strip() if isinstance(value, str) else value for name, value in given.items()}
        return {name: value for name, value in stripped.items() if value != ""}


def load_settings(**overrides: object) -> Settings:
    """Read the environment; `overrides` (by field name) win over it.

    Raises:
        SettingsError: Names every broken setting, what it should look like, and never its value when it is a secret.
    """
    # By their variables' names: accepting fields' names as well would read variables such as HOME and MODEL.
    given: dict[str, Any] = {
        str(Settings.model_fields[name].validation_alias): value
        for name, value in overrides.items()
        if value is not None
    }
    try:
        return Settings(**given)
    except ValidationError as error:
        raise SettingsError(_explain(error)) from None  # the original holds the values
    except (OSError, UnicodeDecodeError):
        message = (
            "The file .env in this folder cannot be read. It has to be a text file in UTF-8, one NAME=value a line."
        )
        raise SettingsError(message) from None  # the original may hold a part of the file


def _explain(error: ValidationError) -> str:
    lines = []
    for problem in error.errors(include_url=False, include_input=False):
        name = str(problem["loc"][0]) if problem["loc"] else "settings"
        field = next((f for key, f in Settings.model_fields.items() if name in {key, f.validation_alias}), None)
        variable = str(field.validation_alias) if field is not None and field.validation_alias else name
        purpose = f" {field.description}" if field is not None else ""
        expected = _expected(problem["type"], problem.get("ctx", {}), problem["msg"])
        if field is not None and field.examples and problem["type"] == "url_parsing":
            expected += f" such as {field.examples[0]}"
        lines.append(f"{variable}: {expected}.{purpose}")
    return "A setting is broken.\n" + "\n".join(f"- {line}" for line in lines)


def _expected(kind: str, context: dict[str, Any], message: str) -> str:
    """What the value should be, in a few words."""
    if "expected" in context:
        return f"it has to be one of {context['expected']}"
    if kind == "value_error":
        return str(context.get("error", message))
    words = {
        "int_parsing": "it has to be a whole number",
        "float_parsing": "it has to be a number",
        "bool_parsing": "it has to be true or false",
        "url_parsing": "it has to be an address",
        "url_scheme": "it has to be an address that begins with http:// or https://",
        "greater_than": f"it has to be more than {context.get('gt')}",
        "greater_than_equal": f"it has to be at least {context.get('ge')}",
        "less_than_equal": f"it has to be at most {context.get('le')}",
        "string_pattern_mismatch": "it has to be 1 to 100 letters, digits, hyphens or underscores",
    }
    return words.get(kind, message[:1].lower() + message[1:])
