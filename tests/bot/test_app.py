from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from blockbuster import BlockingError, blockbuster_ctx
from fakes.messages_api import MessagesApi
from making_documents import simple_pdf

from bot import app as app_module
from bot.app import App, library_folder, open_app, open_library
from bot.claude import Claude
from bot.extractive import Extractive
from bot.settings import Settings, load_settings
from bot.types import EXTRACTIVE, Answered, Conversation, Question
from retrieval.embedding import DEFAULT_MODEL
from retrieval.errors import ModelNotFoundError, RetrievalError, StoreLockedError, StoreMismatchError
from retrieval.readers import Readers
from retrieval.types import PUBLIC, Query, SourceFile
from retrieval.verdicts import Outcome
from retrieval.weights import REVISION, graph_in

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bot.types import Answer

HANDBOOK = simple_pdf(
    "The roses in the garden behind the office are watered every Tuesday by the gardener.",
    "The nightly backup of the mail server starts at two o'clock and is kept for ninety days on tape.",
    title="Handbook",
)
TRAVEL = "# Travel policy\n\n## Approval\n\nBusiness trips are approved by the head of the department.\n"
BACKUP = "When does the backup of the mail server start?"


@pytest.fixture
def configure(tmp_path: Path, models_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Settings]:
    """Settings with a home that has the prepared model, and nothing from outside."""
    monkeypatch.chdir(tmp_path)
    for field in Settings.model_fields.values():
        monkeypatch.delenv(str(field.validation_alias), raising=False)
    home = tmp_path / "home"
    home.mkdir()
    (home / "models").symlink_to(models_folder)
    return lambda **fields: load_settings(home=home, **fields)


async def ingest(app: App, name: str, data: bytes) -> None:
    source = SourceFile(uri=f"file:///{name}", name=name, data=data)
    verdict = await app.ingestion.ingest(source, audience=PUBLIC, by="tester")
    assert verdict.outcome is Outcome.INDEXED, verdict.reason


async def ask(app: App, text: str) -> Answer:
    *_, end = [event async for event in app.engine.answer(Question(text=text, audience=PUBLIC))]
    assert isinstance(end, Answered), end
    return end.answer


async def test_from_a_pdf_to_an_answer_with_its_page(configure: Callable[..., Settings]) -> None:
    async with open_app(configure()) as app:
        await ingest(app, "handbook.pdf", HANDBOOK)
        await ingest(app, "travel.md", TRAVEL.encode())
        found = await ask(app, BACKUP)
        assert "two o'clock" in found.text
        assert (found.model, found.sources[0].title, found.sources[0].page) == (EXTRACTIVE, "handbook", 2)
        assert isinstance(app.model, Extractive)


async def test_what_was_ingested_is_there_after_a_restart(configure: Callable[..., Settings]) -> None:
    async with open_app(configure()) as app:
        await ingest(app, "travel.md", TRAVEL.encode())
    async with open_app(configure()) as app:
        assert [record.title for record in await app.library.documents(PUBLIC)] == ["Travel policy"]
        assert "head of the department" in (await ask(app, "Who approves business trips?")).text
    async with open_library(configure()) as library:
        assert len(await library.documents(None)) == 1


async def test_nothing_blocks_the_event_loop(configure: Callable[..., Settings], tmp_path: Path) -> None:
    """From opening to closing.

    Exempt is importing the heavy modules, which a process does once, before it serves anybody. What the Qdrant binding
    does while it writes cannot be seen from Python (see `retrieval.qdrant_edge`).
    """
    settings = configure()
    async with open_app(settings):
        pass
    with blockbuster_ctx(["bot", "retrieval"]):
        with pytest.raises(BlockingError):
            graph_in(tmp_path, ["model.onnx"])  # the guard works
        async with open_app(settings) as app:
            await ingest(app, "handbook.pdf", HANDBOOK)
            await ingest(app, "travel.md", TRAVEL.encode())
            assert "two o'clock" in (await ask(app, BACKUP)).text
            await ask(app, "出張は誰が承認しますか、the head of the department?")
            await app.searcher.search(Query(text="roses", audience=PUBLIC))
            assert (await app.library.forget("Handbook", None)).removed


async def test_a_language_model_is_asked_where_one_is_set(
    configure: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    async with MessagesApi() as server:
        settings = configure(anthropic_base_url=server.url, model="claude-test", citations="markers")
        async with open_app(settings) as app:
            assert isinstance(app.model, Claude)
            await ingest(app, "travel.md", TRAVEL.encode())
            found = await ask(app, "Who approves business trips?")
            assert (found.model, found.notice) == ("claude-test", "")
            assert found.sources[0].title == "Travel policy"


async def test_a_second_process_is_told_what_to_do(configure: Callable[..., Settings]) -> None:
    async with open_app(configure()):
        with pytest.raises(StoreLockedError, match="QDRANT_URL"):
            async with open_app(configure()):
                pass


async def test_what_fails_to_open_closes_what_was_open(configure: Callable[..., Settings]) -> None:
    settings = configure()
    library_folder(settings).write_text("a file stands in the way", encoding="utf-8")
    with pytest.raises(RetrievalError):
        async with open_app(settings):
            pass
    library_folder(settings).unlink()
    async with open_app(settings) as app:
        assert await app.store.count(None) == 0


async def test_a_library_of_another_model_is_refused_with_the_command_that_mends_it(
    configure: Callable[..., Settings], models_folder: Path
) -> None:
    async with open_app(configure()):
        pass
    folder = models_folder / f"{DEFAULT_MODEL}-{REVISION}"
    with pytest.raises(StoreMismatchError, match="footnote reindex") as raised:
        async with open_app(configure(embedding_model_path=folder)):
            pass
    assert str(raised.value).count("multilingual-e5-small") == 2


async def test_a_model_that_is_not_there_is_told(configure: Callable[..., Settings], tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match="FOOTNOTE_EMBEDDING_MODEL_PATH"):
        async with open_app(configure(embedding_model_path=tmp_path / "nowhere")):
            pass


async def test_a_question_without_a_conversation_has_an_empty_one() -> None:
    assert Question(text="?", audience=PUBLIC).conversation == Conversation(id="")


async def test_a_first_file_that_takes_long_does_not_hold_up_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_module, "_FIRST_SECONDS", 0.05)
    readers, released = Readers(), threading.Event()

    def slow() -> SourceFile:
        released.wait(20)
        return SourceFile(uri="file:///late.txt", name="late.txt", data=b"Late.")

    await app_module._read_ahead(readers, slow)
    assert readers._ahead is None
    released.set()
    await app_module._read_ahead(readers, lambda: None)
    assert readers._ahead is None
    await app_module._read_ahead(readers, slow)
    assert readers._ahead is not None
    await readers.close()
