"""Where the state is kept, how long turns, threads, the history and jobs may last."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field, SecretStr, field_validator


class TurnSettings(BaseModel):
    """Where the state is kept, how long turns, threads, the history and jobs may last."""

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
    max_turns: Annotated[
        int,
        Field(
            validation_alias="FOOTNOTE_MAX_TURNS",
            ge=1,
            le=100_000,
            description="Most questions that one process has in hand at once.",
        ),
    ] = 1_000
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

    @field_validator("redis_url", mode="after")
    @classmethod
    def _redis(cls, url: SecretStr | None) -> SecretStr | None:
        schemes = ("redis://", "rediss://", "redis+cluster://", "rediss+cluster://", "unix://")
        if url is not None and not url.get_secret_value().startswith(schemes):
            message = "it has to be an address that begins with redis:// or rediss://"
            raise ValueError(message)
        return url
