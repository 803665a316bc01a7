"""The embedded store against other processes, kills, full disks and damage. What all stores share: `contracts/`."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fakes.library import ENCODER, IDENTITY, document, document_id, hash_of, unit

from retrieval.errors import StoreError, StoreLockedError
from retrieval.points import Where
from retrieval.qdrant_edge import EdgeStore, backend, read_records
from retrieval.types import PUBLIC

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]


def python(program: str, *args: str) -> subprocess.Popen[str]:
    """A process of its own that runs this program with the repository and its tests at hand."""
    head = f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / 'tests')!r}]\n"
    return subprocess.Popen(  # noqa: S603  # our own programs
        [sys.executable, "-c", head + textwrap.dedent(program), *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def children() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for child in started:
        child.kill()
        child.communicate(timeout=30)


HOLDER = """
    import asyncio
    from pathlib import Path
    from fakes.library import IDENTITY
    from retrieval.qdrant_edge import EdgeStore

    async def main():
        store = await EdgeStore.open(Path(sys.argv[1]), IDENTITY)
        print("open", flush=True)
        await asyncio.sleep(60)

    asyncio.run(main())
"""


async def test_a_second_process_gets_a_sentence_and_a_killed_one_leaves_no_lock(
    tmp_path: Path, children: list[subprocess.Popen[str]]
) -> None:
    holder = python(HOLDER, str(tmp_path))
    children.append(holder)
    assert holder.stdout is not None
    assert await asyncio.to_thread(holder.stdout.readline) == "open\n", holder.communicate(timeout=10)
    with pytest.raises(StoreLockedError, match=r"Another Footnote process .* QDRANT_URL"):
        await EdgeStore.open(tmp_path, IDENTITY)
    with pytest.raises(StoreLockedError):
        await read_records(tmp_path)
    holder.send_signal(signal.SIGKILL)
    await asyncio.to_thread(holder.wait, 30)
    await (await EdgeStore.open(tmp_path, IDENTITY)).close()


async def test_the_same_process_cannot_open_twice_either(tmp_path: Path) -> None:
    store = await EdgeStore.open(tmp_path, IDENTITY)
    with pytest.raises(StoreLockedError):
        await EdgeStore.open(tmp_path, IDENTITY)
    await store.replace(*document("a", ["zebra"]))
    await store.close()


WRITER = """
    import asyncio
    from pathlib import Path
    from fakes.library import IDENTITY, document
    from retrieval.qdrant_edge import EdgeStore

    async def main():
        store = await EdgeStore.open(Path(sys.argv[1]), IDENTITY)
        turn = int(sys.argv[2])
        print("open", flush=True)
        while True:
            turn += 1
            size = 20 + turn % 7 * 40
            await store.replace(*document("a", [f"zebra {size} {turn} {n}" for n in range(size)]))
            if turn % 5 == 0:
                await store.optimize()

    asyncio.run(main())
"""


async def test_a_process_killed_at_any_moment_leaves_one_whole_version(
    tmp_path: Path, children: list[subprocess.Popen[str]]
) -> None:
    dice = random.Random(7)  # noqa: S311  # moments, not secrets
    for turn in range(12):
        writer = python(WRITER, str(tmp_path), str(turn * 1000))
        children.append(writer)
        assert writer.stdout is not None
        assert await asyncio.to_thread(writer.stdout.readline) == "open\n", writer.communicate(timeout=10)
        await asyncio.sleep(dice.uniform(0.0, 0.5))
        writer.send_signal(signal.SIGKILL)
        await asyncio.to_thread(writer.wait, 30)

        store = await EdgeStore.open(tmp_path, IDENTITY)
        found = await store.search(dense=unit(1), sparse=ENCODER.encode_query("zebra"), audience=PUBLIC, limit=1000)
        record = await store.record(document_id("a"))
        size = 0 if record is None else record.chunk_count
        assert {item.version for item in found.found} == ({record.version} if record and size else set())
        for ranks in ([item.dense_rank for item in found.found], [item.bm25_rank for item in found.found]):
            assert sorted(ranks) == list(range(1, size + 1))  # type: ignore[type-var]  # None would fail, as it should
        assert sorted(item.ordinal for item in found.found) == list(range(size))
        # What was staged or superseded is gone from the disk too.
        assert await store._edge.count(Where(type="chunk")) == size
        await store.close()


FULL_DISK = """
    import asyncio, dataclasses, resource, signal
    from pathlib import Path
    from fakes.library import IDENTITY, document
    from retrieval.errors import StoreError
    from retrieval.qdrant_edge import EdgeStore

    def large(item):
        text = item.chunk.text + " " + "x" * 1_500_000
        return dataclasses.replace(item, chunk=dataclasses.replace(item.chunk, text=text))

    async def main():
        store = await EdgeStore.open(Path(sys.argv[1]), IDENTITY)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        record, chunks = document("a", [f"zebra new {n}" for n in range(32)])
        try:
            await store.replace(record, [large(item) for item in chunks])
            print("written")
        except StoreError as error:
            print(error)
        try:
            await store.close()
        except StoreError as error:
            print("close:", error)

    asyncio.run(main())
"""


async def test_files_that_cannot_grow_leave_the_old_version(
    tmp_path: Path, children: list[subprocess.Popen[str]]
) -> None:
    store = await EdgeStore.open(tmp_path, IDENTITY)
    await store.replace(*document("a", ["zebra old"]))
    await store.close()
    writer = python(FULL_DISK, str(tmp_path))
    children.append(writer)
    output, errors = await asyncio.to_thread(writer.communicate, timeout=60)
    assert "disk may be full" in output.splitlines()[0], (output, errors)
    store = await EdgeStore.open(tmp_path, IDENTITY)
    found = await store.search(dense=unit(1), sparse=ENCODER.encode_query("zebra"), audience=PUBLIC, limit=50)
    chunks = await store.load([item.id for item in found.found], PUBLIC)
    assert [chunk.text for chunk in chunks.values()] == ["zebra old"]
    await store.replace(*document("a", ["zebra newer"]))
    await store.close()


async def test_a_nearly_full_disk_is_refused_before_it_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await EdgeStore.open(tmp_path, IDENTITY)
    await store.replace(*document("a", ["zebra old"]))
    monkeypatch.setattr(backend, "MIN_FREE_BYTES", shutil.disk_usage(tmp_path).total * 2)
    with pytest.raises(StoreError, match="full"):
        await store.replace(*document("a", ["zebra new"]))
    assert await store.delete(document_id("a")), "deleting must work on a full disk"
    await store.close()


def spoil(folder: Path, damage: str) -> None:
    (shard,) = folder.glob("shard-*")
    if damage == "truncated":
        for file in shard.rglob("*.json"):
            os.truncate(file, file.stat().st_size // 2)
    elif damage == "emptied":
        shutil.rmtree(shard)
        shard.mkdir()
    elif damage == "lost":
        shutil.rmtree(shard)
    else:
        (folder / "current").write_text("../elsewhere", encoding="utf-8")


@pytest.mark.parametrize("damage", ["truncated", "emptied", "lost", "pointer"])
async def test_a_damaged_library_is_told_in_a_sentence(tmp_path: Path, damage: str) -> None:
    store = await EdgeStore.open(tmp_path, IDENTITY)
    await store.replace(*document("a", ["zebra"]))
    await store.close()
    spoil(tmp_path, damage)
    with pytest.raises(StoreError, match="footnote reindex"):
        await EdgeStore.open(tmp_path, IDENTITY)
    rebuilt = await EdgeStore.rebuild(tmp_path, IDENTITY)
    await rebuilt.publish()
    await rebuilt.close()
    await (await EdgeStore.open(tmp_path, IDENTITY)).close()


async def test_a_folder_that_cannot_be_made_is_told_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder", encoding="utf-8")
    with pytest.raises(StoreError, match="a file in its place"):
        await EdgeStore.open(tmp_path / "file" / "library", IDENTITY)


async def test_use_after_closing_is_told_in_a_sentence(tmp_path: Path) -> None:
    store = await EdgeStore.open(tmp_path, IDENTITY)
    await store.close()
    with pytest.raises(StoreError, match="closed"):
        await store.count(None)


async def test_searches_run_while_documents_are_written(tmp_path: Path) -> None:
    store = await EdgeStore.open(tmp_path, IDENTITY)
    await store.replace(*document("a", ["zebra"]))
    writing = asyncio.ensure_future(store.replace(*document("b", [f"horse {n}" for n in range(2000)])))
    searches = 0
    while not writing.done():
        found = await store.search(
            dense=unit(hash_of("zebra")), sparse=ENCODER.encode_query("zebra"), audience=PUBLIC, limit=10
        )
        assert document_id("a") in {item.document_id for item in found.found if item.bm25_rank is not None}
        searches += 1
    await writing
    assert searches > 1
    await store.close()


async def test_a_file_in_the_librarys_place_is_named(tmp_path: Path) -> None:
    (tmp_path / "library").touch()
    with pytest.raises(StoreError, match="FOOTNOTE_HOME or --home"):
        await EdgeStore.open(tmp_path / "library", IDENTITY)
    with pytest.raises(StoreError, match="FOOTNOTE_HOME or --home"):
        await EdgeStore.open(tmp_path / "library", None)


@pytest.mark.parametrize("inside", ["", "current", "lock", "shard"])
async def test_a_library_of_others_is_told_from_a_damaged_one(inside: str, tmp_path: Path) -> None:
    path = tmp_path / "library"
    await (await EdgeStore.open(path, IDENTITY)).close()
    name = next(found.name for found in path.iterdir() if found.name.startswith("shard-"))
    closed = path / (name if inside == "shard" else inside)
    closed.chmod(0)
    if os.access(closed, os.R_OK):
        pytest.skip("this user may read everything")
    try:
        for identity in (IDENTITY, None):
            with pytest.raises(StoreError, match=r"Check who owns .* FOOTNOTE_HOME or --home"):
                await EdgeStore.open(path, identity)
    finally:
        closed.chmod(0o700)
