"""The settings, and the only reader of the environment. Secrets are SecretStr and never leave this object as text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, Literal

import platformdirs
from pydantic import AnyHttpUrl, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

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
    redis_url: Annotated[
        SecretStr | None,
        Field(
            validation_alias="REDIS_URL",
            description="Redis that keeps the state for many processes; inside the process when not set.",
            examples=["redis://localhost:6379/0"],
        ),
    ] = None
    state_namespace: Annotated[
        str,
        Field(
            validation_alias="FOOTNOTE_STATE_NAMESPACE",
            pattern=r"^[A-Za-z0-9_-]{1,100}$",
            description="What the keys on that Redis begin with; one for each Footnote that shares it.",
        ),
    ] = "footnote"
    lease_seconds: Annotated[
        float,
        Field(
            validation_alias="FOOTNOTE_LEASE_SECONDS",
            ge=1,
            le=600,
            description="How long a process may be silent before another one takes over what it was answering.",
        ),
    ] = 15.0
    turn_seconds: Annotated[
        float,
        Field(
            validation_alias="FOOTNOTE_TURN_SECONDS",
            gt=0,
            le=1_800,
            description="How long a question may take in all; after that the best passages are quoted.",
        ),
    ] = 180.0
    drain_seconds: Annotated[
        float,
        Field(
            validation_alias="FOOTNOTE_DRAIN_SECONDS",
            ge=0,
            le=600,
            description="How long answers under way may take to their end when the process is asked to stop.",
        ),
    ] = 25.0
    max_question_characters: Annotated[
        int,
        Field(validation_alias="FOOTNOTE_MAX_QUESTION_CHARACTERS", ge=1, le=100_000, description="Longest question."),
    ] = 8_000
    max_line: Annotated[
        int,
        Field(
            validation_alias="FOOTNOTE_MAX_LINE",
            ge=1,
            le=1_000,
            description="Most questions of one thread that wait behind the one being answered.",
        ),
    ] = 5
    max_turns: Annotated[
        int,
        Field(
            validation_alias="FOOTNOTE_MAX_TURNS",
            ge=1,
            le=100_000,
            description="Most questions that one process has in hand at once.",
        ),
    ] = 1_000
    user_questions: Annotated[
        int | None,
        Field(
            validation_alias="FOOTNOTE_USER_QUESTIONS",
            ge=1,
            le=100_000,
            description="Questions of one person in a minute; 12 when not set, in the terminal any number.",
        ),
    ] = None
    channel_questions: Annotated[
        int | None,
        Field(
            validation_alias="FOOTNOTE_CHANNEL_QUESTIONS",
            ge=1,
            le=100_000,
            description="Questions in one channel in a minute; 60 when not set, in the terminal any number.",
        ),
    ] = None
    allowed_workspaces: Annotated[
        tuple[str, ...],
        NoDecode,
        Field(
            validation_alias="FOOTNOTE_ALLOWED_WORKSPACES",
            description="Ids of workspaces and guilds that may ask, parted by commas; all when not set.",
        ),
    ] = ()
    allowed_channels: Annotated[
        tuple[str, ...],
        NoDecode,
        Field(
            validation_alias="FOOTNOTE_ALLOWED_CHANNELS",
            description="Ids of channels where questions are answered, parted by commas; all when not set.",
        ),
    ] = ()
    allowed_users: Annotated[
        tuple[str, ...],
        NoDecode,
        Field(
            validation_alias="FOOTNOTE_ALLOWED_USERS",
            description="Ids of people who may ask, parted by commas; all when not set.",
        ),
    ] = ()
    allowed_bots: Annotated[
        tuple[str, ...],
        NoDecode,
        Field(
            validation_alias="FOOTNOTE_ALLOWED_BOTS",
            description="Ids of bots that are answered, parted by commas; none when not set.",
        ),
    ] = ()
    bot_turns: Annotated[
        int,
        Field(
            validation_alias="FOOTNOTE_BOT_TURNS",
            ge=1,
            le=1_000,
            description="Questions of allowed bots that are answered in one thread in an hour.",
        ),
    ] = 5
    conversation_turns: Annotated[
        int,
        Field(
            validation_alias="FOOTNOTE_CONVERSATION_TURNS",
            ge=0,
            le=200,
            description="Turns of a thread that are remembered; 0 remembers none.",
        ),
    ] = 20
    conversation_days: Annotated[
        float,
        Field(
            validation_alias="FOOTNOTE_CONVERSATION_DAYS",
            gt=0,
            le=3_650,
            description="Days that a thread is remembered after its last turn.",
        ),
    ] = 30.0
    history_days: Annotated[
        float,
        Field(
            validation_alias="FOOTNOTE_HISTORY_DAYS",
            ge=0,
            le=3_650,
            description="Days that questions and answers stay in the history; 0 keeps none.",
        ),
    ] = 90.0
    history_entries: Annotated[
        int,
        Field(
            validation_alias="FOOTNOTE_HISTORY_ENTRIES",
            ge=1,
            le=1_000_000,
            description="Most entries of the history; the oldest make room.",
        ),
    ] = 10_000
    jobs_at_once: Annotated[
        int,
        Field(
            validation_alias="FOOTNOTE_JOBS_AT_ONCE",
            ge=1,
            le=64,
            description="Ingestions that one process runs at once.",
        ),
    ] = 2
    job_seconds: Annotated[
        float,
        Field(
            validation_alias="FOOTNOTE_JOB_SECONDS",
            gt=0,
            le=604_800,
            description="How long one ingestion may take, all its documents together.",
        ),
    ] = 7_200.0
    metrics_port: Annotated[
        int | None,
        Field(
            validation_alias="FOOTNOTE_METRICS_PORT",
            ge=1,
            le=65_535,
            description="Port on this machine that shows the metrics for Prometheus; none when not set.",
        ),
    ] = None
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

    @field_validator("allowed_workspaces", "allowed_channels", "allowed_users", "allowed_bots", mode="before")
    @classmethod
    def _parted(cls, value: object) -> object:
        return tuple(filter(None, map(str.strip, value.split(",")))) if isinstance(value, str) else value

    @field_validator("redis_url", mode="after")
    @classmethod
    def _redis(cls, url: SecretStr | None) -> SecretStr | None:
        schemes = ("redis://", "rediss://", "redis+cluster://", "rediss+cluster://", "unix://")
        if url is not None and not url.get_secret_value().startswith(schemes):
            message = "it has to be an address that begins with redis:// or rediss://"
            raise ValueError(message)
        return url

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
