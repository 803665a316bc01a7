"""Who may ask, how much and how often."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field, field_validator
from pydantic_settings import NoDecode


class AdmissionSettings(BaseModel):
    """Who may ask, how much and how often."""

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

    @field_validator("allowed_workspaces", "allowed_channels", "allowed_users", "allowed_bots", mode="before")
    @classmethod
    def _parted(cls, value: object) -> object:
        return tuple(filter(None, map(str.strip, value.split(",")))) if isinstance(value, str) else value
