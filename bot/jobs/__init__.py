"""Ingestion in the background: jobs with progress and cancel, which outlive the process that runs them."""

from bot.jobs.jobs import Jobs
from bot.jobs.requests import LOCAL, JobLimits, JobRequest, platform_kind

__all__ = ["LOCAL", "JobLimits", "JobRequest", "Jobs", "platform_kind"]
