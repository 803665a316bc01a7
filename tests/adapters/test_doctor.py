"""What the doctor says of the state; the rest is in tests/e2e."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from fakes.redis_server import BINARY, RedisServer, free_port, running

from adapters.cli.doctor import Grade, _check_state, _Findings
from bot.redis_embedded import EmbeddedState
from bot.settings import Settings, load_settings
from bot.state_file import FILE

if TYPE_CHECKING:
    from pathlib import Path

needs_redis = pytest.mark.skipif(BINARY is None, reason="no redis-server is installed here")


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for field in Settings.model_fields.values():
        monkeypatch.delenv(str(field.validation_alias), raising=False)


async def state_of(home: Path, redis_url: str | None = None) -> tuple[Grade, str]:
    findings = _Findings(print_them=False)
    settings = load_settings(home=home, redis_url=redis_url)
    await findings.guard("state", lambda: _check_state(settings, findings))
    (finding,) = findings.all
    assert finding.check == "state"
    return finding.grade, finding.text


async def test_inside_the_process(tmp_path: Path) -> None:
    grade, text = await state_of(tmp_path)
    assert (grade, str(tmp_path / "state") in text) == (Grade.OK, True)
    state = await EmbeddedState.open(tmp_path / "state")
    grade, text = await state_of(tmp_path)
    assert (grade, "in use by a Footnote that runs" in text) == (Grade.OK, True)
    await state.close()
    assert (await state_of(tmp_path))[0] is Grade.OK


async def test_a_damaged_file_is_told_and_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    (folder / FILE).write_bytes(b"no database" * 200)
    for _ in range(2):
        grade, text = await state_of(tmp_path)
        assert (grade, "is damaged. The next start puts the file aside" in text) == (Grade.FAIL, True)
    assert [file.name for file in folder.iterdir()] == [FILE]


@needs_redis
@pytest.mark.parametrize(
    ("options", "grade", "words"),
    [
        ("--appendonly yes", Grade.OK, ()),
        ("", Grade.WARN, ("appendonly",)),
        (
            "--appendonly yes --maxmemory 100mb --maxmemory-policy allkeys-lru",
            Grade.WARN,
            ("allkeys-lru", "noeviction"),
        ),
        ("--maxmemory 100mb --maxmemory-policy volatile-ttl", Grade.WARN, ("volatile-ttl", "noeviction", "appendonly")),
    ],
)
async def test_on_a_server(tmp_path: Path, options: str, grade: Grade, words: tuple[str, ...]) -> None:
    with running(RedisServer(tmp_path / "redis", password="geheim", options=options)) as server:
        found, text = await state_of(tmp_path, server.url)
    assert found is grade
    assert f"redis://127.0.0.1:{server.port}/0 (REDIS_URL)" in text
    assert "geheim" not in text
    for word in ("appendonly", "noeviction"):
        assert (word in text) is (word in words)
    assert all(word in text for word in words)


async def test_a_server_that_is_down(tmp_path: Path) -> None:
    grade, text = await state_of(tmp_path, f"redis://:geheim@127.0.0.1:{free_port()}/0")
    assert grade is Grade.FAIL
    assert "cannot be reached. Start it." in text
    assert "geheim" not in text
