"""Which language model writes the answers, and how long they may be."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import AnyHttpUrl, BaseModel, Field, SecretStr, field_validator

DEFAULT_MODEL: Final = "claude-sonnet-5-5"


class AnsweringSettings(BaseModel):
    """Which language model writes the answers, and how long they may be."""

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

    @field_validator("citations", mode="before")
    @classmethod
    def _lower_citations(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value
