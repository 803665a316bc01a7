from __future__ import annotations

from typing import TYPE_CHECKING

from bot.ports import Script

if TYPE_CHECKING:
    from bot.ports import State


async def test_a_value_is_stored_and_read_back(state: State) -> None:
    key = state.key("tag", "a")
    assert await state.get(key) is None
    await state.set(key, "ä")
    assert await state.get(key) == "ä".encode()
    assert await state.run(Script(name="x", text="return {NOW, ARGV[1], redis.call('GET', KEYS[1])}"), [key], [1])
