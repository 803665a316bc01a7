"""An embedder without a model: a text's vector is the sum of its words' random ones, so shared words mean nearness."""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING

import numpy as np

from retrieval.errors import EmbeddingError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


class WordEmbedder:
    """Counts a token for each word. `calls` keeps what was embedded together; `fail` makes it break on a word."""

    model = "words"
    max_tokens = 480

    def __init__(self, dimensions: int = 64, *, fail: str | None = None) -> None:
        self.dimensions = dimensions
        self.fail = fail
        self.calls: list[list[str]] = []
        self._words: dict[str, NDArray[np.float32]] = {}

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(_words(text)) for text in texts]

    async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.calls.append(list(texts))
        return np.array([self._vector(text) for text in texts], np.float32).reshape(len(texts), self.dimensions)

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        return self._vector(text)

    async def close(self) -> None:
        pass

    def _vector(self, text: str) -> NDArray[np.float32]:
        words = _words(text)
        if self.fail is not None and self.fail in words:
            message = "The embedding model failed."
            raise EmbeddingError(message)
        vector = np.ones(self.dimensions, np.float32) * 1e-3
        for word in words:
            if word not in self._words:
                random = np.random.default_rng(zlib.crc32(word.encode()))
                self._words[word] = random.standard_normal(self.dimensions).astype(np.float32)
            vector += self._words[word]
        return (vector / np.linalg.norm(vector)).astype(np.float32)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())
