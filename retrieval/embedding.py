"""The Embedder port on fastembed: one model instance, worker threads, bounded batches, a small cache of queries."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from fastembed import TextEmbedding
from fastembed.common.model_description import ModelSource, PoolingType

from retrieval.errors import EmbeddingError, ModelNotFoundError
from retrieval.weights import MODEL_FILE, checked_folder, packaged_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray
    from tokenizers import Tokenizer

DEFAULT_MODEL: Final = "multilingual-e5-small"
_DEFAULT_DIMENSIONS: Final = 384
_DEFAULT_HUB: Final = ModelSource(hf="intfloat/multilingual-e5-small")
_HUB_FILE: Final = "onnx/model.onnx"
_SPECIAL_TOKENS: Final = 2
_BATCH_TOKENS: Final = 4096
"""Padded tokens in one run of the model: bounds a batch's memory, attention included, to some tens of megabytes."""
_BATCH_TEXTS: Final = 32
_COUNT_TEXTS: Final = 64
_CACHED_QUERIES: Final = 512
_QUERY_SECONDS: Final = 60.0
_PASSAGES_SECONDS: Final = 1800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChoice:
    """Which model, and where its weights may lie."""

    name: str = DEFAULT_MODEL
    """`multilingual-e5-small`, or any model that fastembed lists."""
    folder: Path | None = None
    """A folder with an exported model; looked at before all else."""
    cache: Path
    """Where converted and downloaded weights are kept."""
    threads: int | None = None
    """Threads of one run of the model; None leaves it to ONNX Runtime (all cores)."""


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
        if choice.folder is not None:
            folder = checked_folder(choice.folder)
            engine = _open_folder(f"{choice.name}-{_fingerprint(folder)}", folder, choice)
            return cls(engine, model=f"{choice.name} ({_fingerprint(folder)})", prefixes=_prefixes(choice.name))
        if choice.name == DEFAULT_MODEL:
            packaged = packaged_folder(choice.cache, announce)
            if packaged is not None:
                engine = _open_folder(f"{DEFAULT_MODEL}-packaged", packaged, choice)
                return cls(engine, model=DEFAULT_MODEL, prefixes=_prefixes(DEFAULT_MODEL))
        announce(f"Loading the embedding model {choice.name} from the model hub or its cache …")
        return cls(_open_hub(choice), model=choice.name, prefixes=_prefixes(choice.name))

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
        return [count - _SPECIAL_TOKENS for count in self._count(texts)]

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
        prefixed = [self._prefixes.passage + text for text in texts]
        return await self._in_thread(self._passage_thread, prefixed, _PASSAGES_SECONDS)

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        """Shape (dimensions,), length 1; repeated queries come from a cache. Raises EmbeddingError."""
        cached = self._cache.get(text)
        if cached is not None:
            self._cache.move_to_end(text)
            return cached
        vector: NDArray[np.float32] = (
            await self._in_thread(self._query_thread, [self._prefixes.query + text], _QUERY_SECONDS)
        )[0]
        self._cache[text] = vector
        if len(self._cache) > _CACHED_QUERIES:
            self._cache.popitem(last=False)
        return vector

    async def _in_thread(self, pool: ThreadPoolExecutor, texts: list[str], seconds: float) -> NDArray[np.float32]:
        loop = asyncio.get_running_loop()
        try:
            return await asyncio.wait_for(loop.run_in_executor(pool, self._embed, texts), seconds)
        except TimeoutError as error:
            message = "The embedding model took too long; try again, or with fewer documents at once."
            raise EmbeddingError(message) from error

    def _embed(self, texts: list[str]) -> NDArray[np.float32]:
        vectors = np.empty((len(texts), self._dimensions), np.float32)
        for batch in self._batches(texts):
            try:
                found = self._engine.embed([text for _, text in batch], batch_size=len(batch))
                for (index, _), vector in zip(batch, found, strict=True):
                    vectors[index] = vector
            except (RuntimeError, ValueError, MemoryError) as error:  # what ONNX Runtime raises
                message = "The embedding model failed; run `footnote doctor` to check its files."
                raise EmbeddingError(message) from error
        return vectors

    def _batches(self, texts: list[str]) -> Iterator[list[tuple[int, str]]]:
        """Batches of texts of similar length, longest first so that memory peaks at once and not at the end."""
        window, counts = self._window, self._count(texts)
        order = sorted(range(len(texts)), key=lambda index: -counts[index])
        batch: list[tuple[int, str]] = []
        longest = 0
        for index in order:
            length = min(counts[index], window)
            if batch and (len(batch) == _BATCH_TEXTS or longest * (len(batch) + 1) > _BATCH_TOKENS):
                yield batch
                batch = []
            if not batch:
                longest = length
            text = texts[index] if counts[index] <= window else self._clip(texts[index], window)
            batch.append((index, text))
        if batch:
            yield batch

    def _clip(self, text: str, window: int) -> str:
        """The beginning of `text` that fits into `window` tokens, specials included."""
        offsets = self._tokenizer.encode(text).offsets
        return text[: offsets[window - _SPECIAL_TOKENS][1]]

    async def close(self) -> None:
        """End the worker threads; what is running is finished first."""
        for pool in (self._query_thread, self._passage_thread):
            await asyncio.to_thread(pool.shutdown, wait=True, cancel_futures=True)


def _fingerprint(folder: Path) -> str:
    """Eight hex digits that tell one model folder from another: the vocabulary's bytes and the graph's size."""
    digest = hashlib.sha256((folder / "tokenizer.json").read_bytes())
    digest.update(str((folder / MODEL_FILE).stat().st_size).encode())
    return digest.hexdigest()[:8]


def _open_folder(name: str, folder: Path, choice: ModelChoice) -> TextEmbedding:
    if not _is_known(name):
        TextEmbedding.add_custom_model(
            model=name,
            pooling=PoolingType.MEAN,
            normalization=True,
            sources=_DEFAULT_HUB,
            dim=_DEFAULT_DIMENSIONS if choice.folder is None else _width(folder),
            model_file=MODEL_FILE,
        )
    return _open(name, choice, specific_model_path=str(folder))


def _open_hub(choice: ModelChoice) -> TextEmbedding:
    if choice.name == DEFAULT_MODEL and not _is_known(DEFAULT_MODEL):
        TextEmbedding.add_custom_model(
            model=DEFAULT_MODEL,
            pooling=PoolingType.MEAN,
            normalization=True,
            sources=_DEFAULT_HUB,
            dim=_DEFAULT_DIMENSIONS,
            model_file=_HUB_FILE,
        )
    if not _is_known(choice.name):
        message = (
            f"There is no embedding model called {choice.name}. FOOTNOTE_EMBEDDING_MODEL takes {DEFAULT_MODEL} or a "
            "name from fastembed's list of supported models."
        )
        raise ModelNotFoundError(message)
    return _open(choice.name, choice)


def _open(name: str, choice: ModelChoice, *, specific_model_path: str | None = None) -> TextEmbedding:
    try:
        return TextEmbedding(
            model_name=name,
            cache_dir=str(choice.cache),
            threads=choice.threads,
            specific_model_path=specific_model_path,
        )
    except Exception as error:  # the hub's client, the file system and ONNX Runtime each raise their own
        message = (
            f"The embedding model {choice.name} could not be loaded. Without access to the model hub, set "
            "FOOTNOTE_EMBEDDING_MODEL_PATH to a folder that holds it, or use the packaged weights (Linux on x86-64)."
        )
        raise ModelNotFoundError(message) from error


def _is_known(name: str) -> bool:
    return any(str(model["model"]).casefold() == name.casefold() for model in TextEmbedding.list_supported_models())


def _width(folder: Path) -> int:
    """The hidden size in the folder's `config.json`."""
    try:
        return int(json.loads((folder / "config.json").read_text(encoding="utf-8"))["hidden_size"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"The file config.json in {folder} does not tell the model's hidden_size."
        raise ModelNotFoundError(message) from error
