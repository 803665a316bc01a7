"""Jobs on both kinds of state: what is asked for is done once, told in order, and ends in one way of a few."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from fakes.desk import open_desk
from fakes.job_shop import LIMITS, Shop, is_over, open_shop, outcomes, runs

from bot.results import JobState

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from bot.ports import State


@pytest.fixture
async def shop(state: State, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Shop]:
    url = request.getfixturevalue("redis_url") if state.shared else None
    async with open_desk(tmp_path) as desk, open_shop(desk, state, redis_url=url) as shop:
        yield shop


async def test_a_job_tells_a_verdict_for_each_document_in_order(shop: Shop) -> None:
    async with shop.jobs.worker():
        job = await shop.ask("j1", "b", "missing", "a")
        report = await shop.end(job)
    assert report.state is JobState.DONE
    assert outcomes(report) == [("b", "indexed"), ("missing", "refused"), ("a", "indexed")]
    assert await shop.titles() == {"a", "b"}
    assert report.attempts == 1
