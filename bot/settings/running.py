"""What is logged and measured, and which chat platforms are joined."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field, SecretStr, field_validator


class RunningSettings(BaseModel):
    """What is logged and measured, and which chat platforms are joined."""

    metrics_port: Annotated[
        int | None,
        Field(
            validation_alias="FOOTNOTE_METRICS_PORT",
            ge=1,
            le=65_535,
            description="Port that shows the metrics for Prometheus, at /metrics; none when not set.",
        ),
    ] = None
    metrics_host: Annotated[
        str,
        Field(
            validation_alias="FOOTNOTE_METRICS_HOST",
            description="Address that the metrics are shown on; 0.0.0.0 is all of them, for a Prometheus elsewhere.",
        ),
    ] = "127.0.0.1"
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

    @field_validator("log_level", mode="before")
    @classmethod
    def _lower_level(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value
