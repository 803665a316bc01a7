"""The Embedder port on fastembed: one model instance, worker threads, bounded batches, a small cache of queries."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from retrieval.errors import EmbeddingError, ModelNotFoundError
from retrieval.weights.opening import DEFAULT_MODEL, ModelChoice, open_model

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fastembed import TextEmbedding
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

__all__ = ["DEFAULT_MODEL", "FastEmbedder", "ModelChoice"]

T = TypeVar("T")
_Batch = list[tuple[int, str]]
"""Texts with their places in the whole."""

_BATCH_TOKENS: Final = 4096
"""Padded tokens in one run of the model: bounds a batch's memory, attention included, to some tens of megabytes."""
_BATCH_TEXTS: Final = 32
_COUNT_TEXTS: Final = 64
_CACHED_QUERIES: Final = 512
_QUERY_SECONDS: Final = 60.0
_BATCH_SECONDS: Final = 600.0
"""For one batch of passages, the wait for those before it included."""


@dataclass(frozen=True, slots=True)
class _Prefixes:
    query: str
    passage: str


def _prefixes(name: str) -> _Prefixes:
    """E5 models were trained with these prefixes (Wang et al. 2022, section 4.1); others go without."""
    return _Prefixes("query: ", "passage: ") if "e5" in name.casefold() else _Prefixes("", "")


class FastEmbedder:
    """Embeds with one fastembed model. Make it with `load`, end it with `close`."""

    def __init__(self, engine: TextEmbedding, *, model: str, prefixes: _Prefixes) -> None:
        """Wrap a loaded model."""
        self._engine = engine
        self._model = model
        self._prefixes = prefixes
        self._dimensions = engine.embedding_size
        tokenizer: Tokenizer | None = getattr(engine.model, "tokenizer", None)
        if tokenizer is None:
            message = f"The model {model} has no tokenizer of its own; name another one in FOOTNOTE_EMBEDDING_MODEL."
            raise ModelNotFoundError(message)
        self._tokenizer = tokenizer
        window = (tokenizer.truncation or {}).get("max_length", 512)
        # Texts are clipped here, so that the same tokenizer can count texts of any length.
        tokenizer.no_truncation()
        self._window = int(window)
        self._specials = tokenizer.num_special_tokens_to_add(is_pair=False)
        self._max_tokens = self._window - self._count([prefixes.passage])[0]
        # Queries have a thread of their own: an ingestion under way must not hold them up.
        self._query_thread = ThreadPoolExecutor(1, thread_name_prefix="embed-query")
        self._passage_thread = ThreadPoolExecutor(1, thread_name_prefix="embed-passages")
        self._cache: OrderedDict[str, NDArray[np.float32]] = OrderedDict()

    @classmethod
    async def load(cls, choice: ModelChoice, announce: Callable[[str], None] = lambda _: None) -> FastEmbedder:
        """Find the weights and load the model, in a thread. Raises ModelNotFoundError with what to do."""
        return await asyncio.to_thread(cls._load, choice, announce)

    @classmethod
    def _load(cls, choice: ModelChoice, announce: Callable[[str], None]) -> FastEmbedder:
        engine, model = open_model(choice, announce)
        return cls(engine, model=model, prefixes=_prefixes(choice.name))

    @property
    def model(self) -> str:
        """The name that is kept with the library."""
        return self._model

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        return self._dimensions

    @property
    def max_tokens(self) -> int:
        """Tokens read of a passage, without prefix and special tokens."""
        return self._max_tokens

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, without prefix and special tokens. Takes about a second for a megabyte."""
        return [count - self._specials for count in self._count([_encodable(text) for text in texts])]

    def _count(self, texts: Sequence[str]) -> list[int]:
        counts = [0] * len(texts)
        # The tokenizer pads every batch to its longest text: texts of one length together keep that small.
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        for start in range(0, len(order), _COUNT_TEXTS):
            some = order[start : start + _COUNT_TEXTS]
            for index, encoding in zip(some, self._tokenizer.encode_batch([texts[i] for i in some]), strict=True):
                counts[index] = sum(encoding.attention_mask)
        return counts

    async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Shape (len(texts), dimensions), unit rows. Longer texts are clipped to the window. Raises EmbeddingError."""
        prefixed = [self._prefixes.passage + _encodable(text) for text in texts]
        return await self._embed(self._passage_thread, prefixed, _BATCH_SECONDS)

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        """Shape (dimensions,), length 1, read-only; repeated queries come from a cache. Raises EmbeddingError."""
        cached = self._cache.get(text)
        if cached is not None:
            self._cache.move_to_end(text)
            return cached
        prefixed = [self._prefixes.query + _encodable(text)]
        vector: NDArray[np.float32] = (await self._embed(self._query_thread, prefixed, _QUERY_SECONDS))[0]
        vector.setflags(write=False)  # it is shared with whoever asks the same
        self._cache[text] = vector
        if len(self._cache) > _CACHED_QUERIES:
            self._cache.popitem(last=False)
        return vector

    async def _embed(self, pool: ThreadPoolExecutor, texts: list[str], seconds: float) -> NDArray[np.float32]:
        """Batch by batch, so that callers take turns and a cancelled one stops soon."""
        vectors = np.empty((len(texts), self._dimensions), np.float32)
        for batch in await self._in_thread(pool, partial(self._batches, texts), seconds):
            places = [place for place, _ in batch]
            vectors[places] = await self._in_thread(pool, partial(self._run, batch), seconds)
        return vectors

    async def _in_thread(self, pool: ThreadPoolExecutor, work: Callable[[], T], seconds: float) -> T:
        try:
            future = asyncio.get_running_loop().run_in_executor(pool, _guarded, work)
        except RuntimeError as error:
            message = "The embedding model is closed."
            raise EmbeddingError(message) from error
        try:
            return await asyncio.wait_for(future, seconds)
        except TimeoutError as error:
            message = "The embedding model took too long; try again, or with fewer documents at once."
            raise EmbeddingError(message) from error

    def _run(self, batch: _Batch) -> NDArray[np.float32]:
        """Shape (len(batch), dimensions)."""
        found = self._engine.embed([text for _, text in batch], batch_size=len(batch))
        return np.stack(list(found)).astype(np.float32, copy=False).reshape(len(batch), self._dimensions)

    def _batches(self, texts: list[str]) -> list[_Batch]:
        """Batches of texts of similar length, longest first so that memory peaks at once and not at the end."""
        window, counts = self._window, self._count(texts)
        order = sorted(range(len(texts)), key=lambda index: -counts[index])
        batches: list[_Batch] = []
        longest = 0
        for index in order:
            length = min(counts[index], window)
            full = bool(batches) and (
                len(batches[-1]) == _BATCH_TEXTS or longest * (len(batches[-1]) + 1) > _BATCH_TOKENS
            )
            if full or not batches:
                batches.append([])
                longest = length
            text = texts[index] if counts[index] <= window else self._clip(texts[index])
            batches[-1].append((index, text))
        return batches

    def _clip(self, text: str) -> str:
        """The beginning of `text` that fits into the window, special tokens included."""
        encoding = self._tokenizer.encode(text)
        ends = [
            end for (_, end), special in zip(encoding.offsets, encoding.special_tokens_mask, strict=True) if not special
        ]
        room = self._window - self._specials
        clipped = text[: ends[room - 1]]
        # A cut word may fall into more tokens than it had.
        while room > 1 and self._count([clipped])[0] > self._window:
            room -= 1
            clipped = text[: ends[room - 1]]
        return clipped

    async def close(self) -> None:
        """End the worker threads; what is running is finished first."""
        for pool in (self._query_thread, self._passage_thread):
            await asyncio.to_thread(pool.shutdown, wait=True, cancel_futures=True)


def _encodable(text: str) -> str:
    """The text with `?` for lone surrogates, which no tokenizer takes."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _guarded(work: Callable[[], T]) -> T:
    """Run in a worker thread; whatever the libraries raise becomes a sentence."""
    try:
        return work()
    except Exception as error:  # the exceptions of ONNX Runtime and of the tokenizer share no base but this
        message = "The embedding model failed; run `footnote doctor` to check its files."
        raise EmbeddingError(message) from error
