"""The settings, and the only reader of the environment. Secrets are SecretStr and never leave this object as text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, Literal

import platformdirs
from pydantic import AnyHttpUrl, Field, SecretStr, ValidationError, field_validator
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
        Field(validation_alias="QDRANT_URL", description="Qdrant server that holds the library for many processes."),
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
            description="Another server that speaks Anthropic's Messages API; it needs no key.",
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
        Field(validation_alias="FOOTNOTE_LOG_LEVEL", description="Least severity that is logged, to standard error."),
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

    @field_validator("home", "embedding_model_path", mode="after")
    @classmethod
    def _absolute(cls, path: Path | None) -> Path | None:
        return None if path is None else path.expanduser().absolute()

    @field_validator("log_level", "citations", mode="before")
    @classmethod
    def _lower(cls, value: object) -> object:
        return value.strip().lower() if isinstance(value, str) else value


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


def _explain(error: ValidationError) -> str:
    lines = []
    for problem in error.errors(include_url=False, include_input=False):
        name = str(problem["loc"][0]) if problem["loc"] else "settings"
        field = next((f for key, f in Settings.model_fields.items() if name in {key, f.validation_alias}), None)
        variable = str(field.validation_alias) if field is not None and field.validation_alias else name
        purpose = f" {field.description}" if field is not None else ""
        lines.append(f"{variable}: {_expected(problem['type'], problem.get('ctx', {}), problem['msg'])}.{purpose}")
    return "A setting is broken.\n" + "\n".join(f"- {line}" for line in lines)


def _expected(kind: str, context: dict[str, Any], message: str) -> str:
    """What the value should be, in a few words."""
    if "expected" in context:
        return f"it has to be one of {context['expected']}"
    words = {
        "int_parsing": "it has to be a whole number",
        "float_parsing": "it has to be a number",
        "bool_parsing": "it has to be true or false",
        "url_parsing": "it has to be an address such as http://localhost:6333",
        "url_scheme": "it has to be an address that begins with http:// or https://",
        "string_pattern_mismatch": "it has to be 1 to 100 letters, digits, hyphens or underscores",
    }
    return words.get(kind, message[:1].lower() + message[1:])
