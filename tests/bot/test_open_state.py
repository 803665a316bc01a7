"""Which state the composition root opens, and that it lets go of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from fakes.redis_server import free_port

from bot.app import open_state, server_facts, state_folder
from bot.errors import StateMisconfiguredError, StateUnavailableError
from bot.settings import Settings, load_settings

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for field in Settings.model_fields.values():
        monkeypatch.delenv(str(field.validation_alias), raising=False)


async def test_without_an_address_it_lies_in_the_home(tmp_path: Path) -> None:
    settings = load_settings(home=tmp_path, state_namespace="ours")
    async with open_state(settings) as state:
        assert not state.shared
        assert state.key("a") == "ours:{a}"
        await state.set(state.key("a"), "x")
        with pytest.raises(StateMisconfiguredError, match="REDIS_URL"):
            async with open_state(settings):
                pass
    assert state_folder(settings) == tmp_path / "state"
    with pytest.raises(ZeroDivisionError):
        await broken_off(settings)
    async with open_state(settings) as state:
        assert await state.get(state.key("a")) == b"x"
    assert await server_facts(settings) is None


async def broken_off(settings: Settings) -> None:
    async with open_state(settings) as state:
        assert await state.get(state.key("a")) == b"x"
        raise ZeroDivisionError


async def test_with_an_address_it_is_the_server(tmp_path: Path, redis_url: str) -> None:
    settings = load_settings(home=tmp_path / "home", redis_url=redis_url, state_namespace="ours")
    async with open_state(settings) as state:
        assert state.shared
        assert state.key("a") == "ours:{a}"
    with pytest.raises(StateUnavailableError):
        await state.get(state.key("a"))
    facts = await server_facts(settings)
    assert facts is not None
    assert facts.address == redis_url
    assert not state_folder(settings).parent.exists()


async def test_a_server_that_is_down_stops_the_start(tmp_path: Path) -> None:
    settings = load_settings(home=tmp_path, redis_url=f"redis://:geheim@127.0.0.1:{free_port()}/0")
    with pytest.raises(StateUnavailableError, match="unset it to keep the state inside this process"):
        async with open_state(settings):
            pass
