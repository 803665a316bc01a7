"""The settings, and the only reader of the environment. Secrets are SecretStr and never leave this object as text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, Literal

import platformdirs
from pydantic import AnyHttpUrl, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from bot.errors import SettingsError

DEFAULT_MODEL: Final = "claude-sonnet-5-5"


class Settings(BaseSettings):
    """Everything an operator can set, from environment variables or a `.env` file in the folder of the start."""

    model_config = SettingsConfigDict(
        env_file=".env",
        env_file_encoding="utf-8",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
    )

    home: Annotated[
        Path,
        Field(
            validation_alias="FOOTNOTE_HOME",
            default_factory=lambda: Path(platformdirs.user_data_dir("footnote", appauthor=False)),
            description="Folder for everything that is kept: the library and the prepared model.",
        ),
    ]
    embedding_model: Annotated[
        str,
        Field(
            validation_alias="FOOTNOTE_EMBEDDING_MODEL",
            min_length=1,
            description="Embedding model: multilingual-e5-small, or any that fastembed supports.",
        ),
    ] = "multilingual-e5-small"
    embedding_model_path: Annotated[
        Path | None,
        Field(
            validation_alias="FOOTNOTE_EMBEDDING_MODEL_PATH",
            description="Folder with the embedding model's ONNX files; looked at before packaged weights and hub.",
        ),
    ] = None
    embedding_threads: Annotated[
        int | None,
        Field(
            validation_alias="FOOTNOTE_EMBEDDING_THREADS",
            ge=1,
            le=256,
            description="Processor threads for one run of the embedding model; all cores when not set.",
        ),
    ] = None
    qdrant_url: Annotated[
        AnyHttpUrl | None,
        Field(
            validation_alias="QDRANT_URL",
            repr=False,  # it may hold a password
            description="Qdrant server that holds the library for many processes.",
            examples=["http://localhost:6333"],
        ),
    ] = None
    qdrant_api_key: Annotated[
        SecretStr | None, Field(validation_alias="QDRANT_API_KEY", description="Key of that server.")
    ] = None
    qdrant_collection: Annotated[
        str,
        Field(
            validation_alias="QDRANT_COLLECTION",
            pattern=r"^[A-Za-z0-9_-]{1,100}$",
            description="Name of the library on that server.",
        ),
    ] = "footnote"
    anthropic_api_key: Annotated[
        SecretStr | None,
        Field(
            validation_alias="ANTHROPIC_API_KEY",
            description="Key for Claude; without it answers quote the documents' own sentences.",
        ),
    ] = None
    anthropic_base_url: Annotated[
        AnyHttpUrl | None,
        Field(
            validation_alias="ANTHROPIC_BASE_URL",
            repr=False,  # it may hold a password
            description="Another server that speaks Anthropic's Messages API; it needs no key.",
            examples=["http://localhost:8080"],
        ),
    ] = None
    model: Annotated[
        str,
        Field(validation_alias="FOOTNOTE_MODEL", min_length=1, description="Language model to ask on that server."),
    ] = DEFAULT_MODEL
    citations: Annotated[
        Literal["auto", "native", "markers"],
        Field(
            validation_alias="FOOTNOTE_CITATIONS",
            description="How the model cites: its server's own citations, markers in the text, or found out (auto).",
        ),
    ] = "auto"
    answer_tokens: Annotated[
        int,
        Field(validation_alias="FOOTNOTE_ANSWER_TOKENS", ge=64, le=32_000, description="Longest answer, in tokens."),
    ] = 2_000
    answer_seconds: Annotated[
        float,
        Field(
            validation_alias="FOOTNOTE_ANSWER_SECONDS",
            gt=0,
            le=600,
            description="How long the language model may take; after that the best passages are quoted.",
        ),
    ] = 120.0
    max_file_megabytes: Annotated[
        int, Field(validation_alias="FOOTNOTE_MAX_FILE_MB", ge=1, le=4_096, description="Largest document, in MB.")
    ] = 100
    max_pages: Annotated[
        int, Field(validation_alias="FOOTNOTE_MAX_PAGES", ge=1, le=100_000, description="Most pages of a document.")
    ] = 5_000
    read_seconds: Annotated[
        float,
        Field(
            validation_alias="FOOTNOTE_READ_SECONDS",
            gt=0,
            le=3_600,
            description="Longest time to read one document.",
        ),
    ] = 60.0
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Field(validation_alias="FOOTNOTE_LOG_LEVEL", description="Least severity that is logged."),
    ] = "warning"
    log_texts: Annotated[
        bool,
        Field(
            validation_alias="FOOTNOTE_LOG_TEXTS",
            description="Also log questions and answers; off, so that logs hold no one's words.",
        ),
    ] = False
    slack_bot_token: Annotated[
        SecretStr | None, Field(validation_alias="SLACK_BOT_TOKEN", description="Reserved for Slack.")
    ] = None
    discord_token: Annotated[
        SecretStr | None, Field(validation_alias="DISCORD_TOKEN", description="Reserved for Discord.")
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _without_blanks(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Blanks and line ends around a value come from copying; a value of nothing else is none."""
        stripped = {name: value.strip() if isinstance(value, str) else value for name, value in given.items()}
        return {name: value for name, value in stripped.items() if value != ""}

    @field_validator("home", "embedding_model_path", mode="after")
    @classmethod
    def _absolute(cls, path: Path | None) -> Path | None:
        try:
            return None if path is None else path.expanduser().absolute()
        except RuntimeError as error:
            message = "there is no such user"
            raise ValueError(message) from error

    @field_validator("log_level", "citations", mode="before")
    @classmethod
    def _lower(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value


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
