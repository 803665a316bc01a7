"""The composition root: settings in, a working application out. The only module that knows every implementation.

The modules named after heavy libraries are imported inside the functions that need them, so that `footnote --help` and
the commands that only list documents start at once.
"""

# ruff: noqa: PLC0415 - see the docstring

from __future__ import annotations

import asyncio
import contextlib
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bot.extractive import Extractive
from bot.library import Library
from retrieval.chunking import CHUNKER

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from bot.engine import AnswerEngine
    from bot.history import History
    from bot.ports import LanguageModel, State
    from bot.redis_embedded import EmbeddedState
    from bot.redis_server import ServerFacts, ServerState
    from bot.reindexing import RebuiltStore, Workshop
    from bot.settings import Settings
    from retrieval.embedding import FastEmbedder, ModelChoice
    from retrieval.ingestion import Ingestion
    from retrieval.points import LibraryIdentity
    from retrieval.ports import Embedder, Store
    from retrieval.readers import Readers
    from retrieval.search import Searcher
    from retrieval.types import SourceFile

LIBRARY_FOLDER: Final = "library"
MODELS_FOLDER: Final = "models"
STATE_FOLDER: Final = "state"
_FIRST_SECONDS: Final = 1.0
"""How long the start may wait for the first file to be there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """Everything that an adapter needs."""

    settings: Settings
    embedder: Embedder
    store: Store
    library: Library
    searcher: Searcher
    ingestion: Ingestion
    engine: AnswerEngine
    model: LanguageModel


def library_folder(settings: Settings) -> Path:
    """Where the embedded library lies."""
    return settings.home / LIBRARY_FOLDER


def state_folder(settings: Settings) -> Path:
    """Where the embedded state lies."""
    return settings.home / STATE_FOLDER


@asynccontextmanager
async def open_state(settings: Settings) -> AsyncIterator[State]:
    """Redis where one is set, else the state inside this process; closed at the end, whatever happens.

    Raises:
        StateMisconfiguredError: The address, password or certificate is wrong, or another process uses the folder.
        StateUnavailableError: Redis is down.
    """
    state = await _state(settings)
    try:
        yield state
    finally:
        await state.close()


@asynccontextmanager
async def open_history(settings: Settings, *, reading: bool = False) -> AsyncIterator[History]:
    """The history, and nothing else of the state.

    With `reading` also that which another process keeps in the folder, as of its last saving; changes are then lost.
    Raises as `open_state` does.
    """
    from bot.history import History

    if reading and settings.redis_url is None:
        embedded_type = await asyncio.to_thread(_embedded_state)
        state: State = await embedded_type.read(state_folder(settings), settings.state_namespace)
    else:
        state = await _state(settings)
    try:
        yield History(state, days=settings.history_days, entries=settings.history_entries)
    finally:
        await state.close()


async def server_facts(settings: Settings) -> ServerFacts | None:
    """What an operator should know of the Redis; None when the state is inside this process. Raises StateError."""
    if settings.redis_url is None:
        return None
    server_type = await asyncio.to_thread(_server_state)
    state = await server_type.open(settings.redis_url, settings.state_namespace)
    try:
        return await state.facts()
    finally:
        await state.close()


async def _state(settings: Settings) -> State:
    # In a thread: redis-py takes a third of a second to import.
    if settings.redis_url is not None:
        server_type = await asyncio.to_thread(_server_state)
        return await server_type.open(settings.redis_url, settings.state_namespace)
    embedded_type = await asyncio.to_thread(_embedded_state)
    return await embedded_type.open(state_folder(settings), settings.state_namespace)


def _server_state() -> type[ServerState]:
    from bot.redis_server import ServerState

    return ServerState


def _embedded_state() -> type[EmbeddedState]:
    from bot.redis_embedded import EmbeddedState

    return EmbeddedState


@asynccontextmanager
async def open_app(
    settings: Settings,
    announce: Callable[[str], None] = lambda _: None,
    *,
    to_ingest: Callable[[], SourceFile | None] | None = None,
    meanwhile: Callable[[], object] | None = None,
    ingest_command: str = "/ingest",
) -> AsyncIterator[App]:
    """Open everything; close it in reverse order at the end, whatever happens.

    `announce` gets a sentence before each step that takes seconds. `to_ingest` brings, from a thread, the file that is
    ingested first: it is read while the model loads. `meanwhile` is called in a thread at that time, to import what is
    needed next. `ingest_command` is what refusals name. Raises RetrievalError and BotError with sentences for the user.
    """
    from bot.engine import AnswerEngine
    from retrieval.bm25 import Bm25Encoder
    from retrieval.ingestion import Ingestion
    from retrieval.search import Searcher

    async with AsyncExitStack() as stack:
        readers = open_readers(settings, stack)
        if to_ingest is not None:
            await _read_ahead(readers, to_ingest)
        embedder = await open_embedder(settings, stack, announce, meanwhile)
        bm25 = Bm25Encoder()
        store = await open_store(settings, identity_of(embedder))
        stack.push_async_callback(store.close)
        model = open_model(settings, embedder)
        stack.push_async_callback(model.close)
        searcher = Searcher(store, embedder, bm25)
        yield App(
            settings=settings,
            embedder=embedder,
            store=store,
            library=Library(store),
            searcher=searcher,
            ingestion=Ingestion(readers, embedder, store, bm25),
            engine=AnswerEngine(store, searcher, model, fallback=Extractive(embedder), ingest_command=ingest_command),
            model=model,
        )


async def _read_ahead(readers: Readers, first: Callable[[], SourceFile | None]) -> None:
    # A slow disk is waited for later, where the user is told of it.
    with contextlib.suppress(TimeoutError):
        source = await asyncio.wait_for(asyncio.to_thread(first), _FIRST_SECONDS)
        if source is not None:
            readers.read_ahead(source)


@asynccontextmanager
async def open_library(settings: Settings) -> AsyncIterator[Library]:
    """Only the documents' records: no model is loaded, and a library built with another model opens as well."""
    store = await open_store(settings, None)
    try:
        yield Library(store)
    finally:
        await store.close()


@asynccontextmanager
async def open_workshop(
    settings: Settings, announce: Callable[[str], None] = lambda _: None
) -> AsyncIterator[Workshop]:
    """An empty library beside the present one and what fills it; the present one stays unless it is published."""
    from bot.reindexing import Workshop
    from retrieval.bm25 import Bm25Encoder
    from retrieval.ingestion import Ingestion

    async with AsyncExitStack() as stack:
        embedder = await open_embedder(settings, stack, announce)
        bm25 = Bm25Encoder()
        store = await _open_rebuild(settings, identity_of(embedder))
        stack.push_async_callback(store.close)
        ingestion = Ingestion(open_readers(settings, stack), embedder, store, bm25)
        yield Workshop(store=store, ingestion=ingestion, embedder=embedder, bm25=bm25)


def open_readers(settings: Settings, stack: AsyncExitStack) -> Readers:
    """The readers with the limits of the settings; the stack ends their processes."""
    from retrieval.readers import Readers, ReadLimits

    limits = ReadLimits(
        bytes=settings.max_file_megabytes * 1024 * 1024, pages=settings.max_pages, seconds=settings.read_seconds
    )
    readers = Readers(limits)
    stack.push_async_callback(readers.close)
    return readers


async def open_embedder(
    settings: Settings,
    stack: AsyncExitStack,
    announce: Callable[[str], None],
    meanwhile: Callable[[], object] | None = None,
) -> Embedder:
    """Load the embedding model; the stack closes it. `meanwhile` as in `open_app`."""
    # In a thread: its libraries take half a second to import, and a file may be being read meanwhile.
    embedder_type, choice_type = await asyncio.to_thread(_embedding)
    if meanwhile is not None:
        # From here on the processor is in the model's own code; imports before this would hold up each other.
        asyncio.get_running_loop().run_in_executor(None, meanwhile)
    choice = choice_type(
        name=settings.embedding_model,
        folder=settings.embedding_model_path,
        cache=settings.home / MODELS_FOLDER,
        threads=settings.embedding_threads,
    )
    embedder = await embedder_type.load(choice, announce)
    stack.push_async_callback(embedder.close)
    return embedder


def _embedding() -> tuple[type[FastEmbedder], type[ModelChoice]]:
    from retrieval.embedding import FastEmbedder, ModelChoice

    return FastEmbedder, ModelChoice


def identity_of(embedder: Embedder) -> LibraryIdentity:
    """What a library made with this embedder and this version's chunker remembers."""
    from retrieval.bm25 import Bm25Encoder
    from retrieval.points import LibraryIdentity

    return LibraryIdentity(
        model=embedder.model, dimensions=embedder.dimensions, chunker=CHUNKER, bm25=Bm25Encoder.VERSION
    )


async def open_store(settings: Settings, identity: LibraryIdentity | None) -> Store:
    """The server's store where one is set, else the embedded one. None takes a library of any identity."""
    if settings.qdrant_url is not None:
        from retrieval.qdrant_server import ServerStore

        key = settings.qdrant_api_key
        return await ServerStore.open(
            str(settings.qdrant_url),
            identity,
            api_key=key.get_secret_value() if key is not None else None,
            collection=settings.qdrant_collection,
        )
    from retrieval.qdrant_edge import EdgeStore

    return await EdgeStore.open(library_folder(settings), identity)


async def _open_rebuild(settings: Settings, identity: LibraryIdentity) -> RebuiltStore:
    if settings.qdrant_url is not None:
        from retrieval.qdrant_server import ServerStore

        key = settings.qdrant_api_key
        return await ServerStore.rebuild(
            str(settings.qdrant_url),
            identity,
            api_key=key.get_secret_value() if key is not None else None,
            collection=settings.qdrant_collection,
        )
    from retrieval.qdrant_edge import EdgeStore

    return await EdgeStore.rebuild(library_folder(settings), identity)


def open_model(settings: Settings, embedder: Embedder) -> LanguageModel:
    """Claude when a key or a server is set, else the extractive model."""
    if settings.anthropic_api_key is None and settings.anthropic_base_url is None:
        return Extractive(embedder)
    from bot.claude import Claude

    return Claude(
        api_key=settings.anthropic_api_key or "",
        base_url=str(settings.anthropic_base_url) if settings.anthropic_base_url is not None else None,
        model=settings.model,
        max_tokens=settings.answer_tokens,
        timeout=settings.answer_seconds,
        citations=settings.citations,
    )
