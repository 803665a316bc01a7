"""What an embedder keeps to, on the packaged model; and what only FastEmbedder promises."""

from __future__ import annotations

import asyncio
import json
import shutil
from typing import TYPE_CHECKING

import numpy as np
import pytest
from fakes.embedder import WordEmbedder

from retrieval.embedding import DEFAULT_MODEL, FastEmbedder, ModelChoice
from retrieval.errors import EmbeddingError, ModelNotFoundError
from retrieval.weights import MODEL_FILE, REVISION

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from retrieval.ports import Embedder

REFUND = "Customers get their money back within thirty days of the purchase."
CATS = "Cats sleep for sixteen hours a day."
REFUND_JA = "お客様は購入から三十日以内に返金を受けられます。"
ODD = ["", " ", "\n\n", "\x00", "🙂" * 50, "\ud83d", "a" * 5_000, "<s></s>", "｡ﾟ", "क्षि", "\u202eabc"]


@pytest.fixture(params=["fastembed", "words"])
def any_embedder(request: pytest.FixtureRequest) -> Embedder:
    """The real one, and the fake of other tests, which has to behave alike."""
    if request.param == "words":
        return WordEmbedder()
    embedder: FastEmbedder = request.getfixturevalue("embedder")
    return embedder


def lengths(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(np.linalg.norm(vectors, axis=-1), np.float32)


async def test_vectors_are_unit_rows_of_float32(any_embedder: Embedder) -> None:
    vectors = await any_embedder.embed_passages([REFUND, CATS, REFUND_JA])
    assert vectors.shape == (3, any_embedder.dimensions)
    assert vectors.dtype == np.float32
    assert np.allclose(lengths(vectors), 1, atol=1e-4)
    query = await any_embedder.embed_query("refund?")
    assert query.shape == (any_embedder.dimensions,)
    assert np.allclose(lengths(query), 1, atol=1e-4)


async def test_no_texts_make_no_rows(any_embedder: Embedder) -> None:
    assert (await any_embedder.embed_passages([])).shape == (0, any_embedder.dimensions)
    assert any_embedder.count_tokens([]) == []


async def test_it_has_a_name_and_a_window(any_embedder: Embedder) -> None:
    assert any_embedder.model
    assert any_embedder.max_tokens > 100


async def test_odd_texts_have_vectors_and_counts(any_embedder: Embedder) -> None:
    vectors = await any_embedder.embed_passages(ODD)
    assert np.isfinite(vectors).all()
    assert np.allclose(lengths(vectors), 1, atol=1e-4)
    assert all(count >= 0 for count in any_embedder.count_tokens(ODD))
    for text in ODD:
        assert np.isfinite(await any_embedder.embed_query(text)).all()


async def test_the_order_of_the_rows_is_that_of_the_texts(any_embedder: Embedder) -> None:
    texts = [f"{CATS} " * (n % 7 + 1) + f"Number {n} is {'odd' if n % 2 else 'even'}." for n in range(40)]
    together = await any_embedder.embed_passages(texts)
    backwards = (await any_embedder.embed_passages(texts[::-1]))[::-1]
    # In eight bits the other texts of a batch move a vector a little.
    assert (np.sum(together * backwards, axis=1) > 0.99).all()


async def test_a_text_is_the_same_alone_and_in_company(any_embedder: Embedder) -> None:
    alone = (await any_embedder.embed_passages([REFUND]))[0]
    company = (await any_embedder.embed_passages([CATS * 30, REFUND, "", REFUND_JA]))[1]
    assert float(alone @ company) > 0.99


async def test_the_passage_that_answers_is_the_nearest(any_embedder: Embedder) -> None:
    passages = await any_embedder.embed_passages([CATS, REFUND])
    query = await any_embedder.embed_query("Within how many days do customers get their money back?")
    assert int(np.argmax(passages @ query)) == 1


# ---- the real model -----------------------------------------------------------------------------------------------


async def test_translations_are_near(embedder: FastEmbedder) -> None:
    refund, translated, cats = await embedder.embed_passages([REFUND, REFUND_JA, CATS])
    assert float(refund @ translated) > float(cats @ translated) + 0.05
    query = await embedder.embed_query("返金の期限はいつですか")
    assert float(refund @ query) > float(cats @ query)


async def test_what_lies_behind_the_window_does_not_count(embedder: FastEmbedder) -> None:
    long = " ".join(f"word{n}" for n in range(2_000))
    whole, other_end = await embedder.embed_passages([long, long[: len(long) // 2] + REFUND])
    assert float(whole @ other_end) > 0.99


async def test_a_text_that_just_fits_is_not_clipped(embedder: FastEmbedder) -> None:
    text = " ".join(["a"] * (embedder.max_tokens - 1))
    assert embedder.count_tokens([text]) == [embedder.max_tokens - 1]
    without, with_end = await embedder.embed_passages([text, f"{text} refund"])
    assert not np.array_equal(without, with_end)


async def test_the_window_is_filled_to_its_last_token(embedder: FastEmbedder) -> None:
    for extra in range(-2, 4):
        vectors = await embedder.embed_passages([" ".join(["a"] * (embedder.max_tokens + extra))])
        assert np.isfinite(vectors).all()


def test_tokens_are_counted_without_prefix_and_special_ones(embedder: FastEmbedder) -> None:
    assert embedder.count_tokens(["", "cat", "cat cat", "x" + " x" * 99_999]) == [0, 1, 2, 100_000]
    assert embedder.count_tokens(["日本語の文章です。"])[0] > 2


def test_counts_do_not_depend_on_the_company(embedder: FastEmbedder) -> None:
    texts = [CATS * n for n in range(150)]
    assert embedder.count_tokens(texts) == [embedder.count_tokens([text])[0] for text in texts]


async def test_a_repeated_question_comes_from_the_cache_and_cannot_be_changed(embedder: FastEmbedder) -> None:
    vector = await embedder.embed_query("How are refunds paid?")
    assert await embedder.embed_query("How are refunds paid?") is vector
    with pytest.raises(ValueError, match="read-only"):
        vector[0] = 1


async def test_the_cache_is_bounded(embedder: FastEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retrieval.embedding._CACHED_QUERIES", 2)
    first = await embedder.embed_query("one")
    for text in ("two", "three", "four"):
        await embedder.embed_query(text)
    assert len(embedder._cache) <= 600
    assert await embedder.embed_query("four") is await embedder.embed_query("four")
    assert np.allclose(await embedder.embed_query("one"), first, atol=1e-6)


async def test_a_question_does_not_wait_for_passages(embedder: FastEmbedder) -> None:
    passages = asyncio.ensure_future(embedder.embed_passages([f"{CATS} {n} " * 8 for n in range(48)]))
    await asyncio.sleep(0)
    queries = await asyncio.gather(*(embedder.embed_query(f"question {n}") for n in range(8)))
    assert not passages.done()
    assert np.allclose(lengths(np.stack(queries)), 1, atol=1e-4)
    assert (await passages).shape == (48, embedder.dimensions)


async def test_cancelled_work_stops_after_its_batch(embedder: FastEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[int] = []
    begun = asyncio.Event()
    loop, run = asyncio.get_running_loop(), embedder._run

    def counting(batch: list[tuple[int, str]]) -> NDArray[np.float32]:
        batches.append(len(batch))
        loop.call_soon_threadsafe(begun.set)
        return run(batch)

    monkeypatch.setattr(embedder, "_run", counting)
    work = asyncio.ensure_future(embedder.embed_passages([f"{CATS} {n}" for n in range(400)]))
    await begun.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    await embedder.embed_passages([CATS])
    assert len(batches) <= 3


async def test_the_names_that_the_library_remembers(embedder: FastEmbedder) -> None:
    assert (embedder.model, embedder.dimensions) == (DEFAULT_MODEL, 384)


# ---- finding the weights ------------------------------------------------------------------------------------------


@pytest.fixture
def prepared(models_folder: Path) -> Path:
    return models_folder / f"{DEFAULT_MODEL}-{REVISION}"


@pytest.fixture
def copy(prepared: Path, tmp_path: Path) -> Path:
    """A folder of the operator's own, to be broken."""
    folder = tmp_path / "own"
    folder.mkdir()
    for file in prepared.iterdir():
        if file.name == MODEL_FILE:
            (folder / file.name).symlink_to(file)
        else:
            shutil.copy(file, folder)
    return folder


async def test_a_folder_of_ones_own_is_used_and_named_apart(copy: Path, tmp_path: Path, embedder: FastEmbedder) -> None:
    own = await FastEmbedder.load(ModelChoice(folder=copy, cache=tmp_path / "cache"))
    try:
        assert own.model != embedder.model
        assert DEFAULT_MODEL in own.model
        same = float(await own.embed_query(REFUND) @ await embedder.embed_query(REFUND))
        assert same > 0.9999
    finally:
        await own.close()


async def test_the_hubs_own_layout_is_understood(copy: Path, tmp_path: Path) -> None:
    (copy / "onnx").mkdir()
    (copy / MODEL_FILE).rename(copy / "onnx" / MODEL_FILE)
    own = await FastEmbedder.load(ModelChoice(folder=copy, cache=tmp_path))
    assert own.dimensions == 384
    await own.close()


async def test_other_weights_have_another_name(copy: Path, tmp_path: Path) -> None:
    names = []
    for token in ("<s>", "<a>"):
        tokenizer = (copy / "tokenizer.json").read_text(encoding="utf-8")
        (copy / "tokenizer.json").write_text(tokenizer.replace('"<s>"', f'"{token}"'), encoding="utf-8")
        own = await FastEmbedder.load(ModelChoice(folder=copy, cache=tmp_path))
        names.append(own.model)
        await own.close()
    assert len(set(names)) == 2


async def refused(choice: ModelChoice) -> str:
    with pytest.raises(ModelNotFoundError) as raised:
        await FastEmbedder.load(choice)
    return str(raised.value)


async def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    told = await refused(ModelChoice(folder=tmp_path / "nowhere", cache=tmp_path))
    assert "nowhere" in told
    assert "FOOTNOTE_EMBEDDING_MODEL_PATH" in told


@pytest.mark.parametrize("missing", ["tokenizer.json", "tokenizer_config.json", "config.json", MODEL_FILE])
async def test_a_missing_file_is_named(missing: str, copy: Path, tmp_path: Path) -> None:
    (copy / missing).unlink()
    assert missing in await refused(ModelChoice(folder=copy, cache=tmp_path))


@pytest.mark.parametrize("broken", ["tokenizer.json", "tokenizer_config.json", MODEL_FILE])
async def test_a_broken_file_is_no_traceback(broken: str, copy: Path, tmp_path: Path) -> None:
    (copy / broken).unlink()
    (copy / broken).write_bytes(b"nonsense")
    told = await refused(ModelChoice(folder=copy, cache=tmp_path))
    assert str(copy) in told
    assert "nonsense" not in told


async def test_a_config_without_a_width_is_named(copy: Path, tmp_path: Path) -> None:
    (copy / "config.json").write_text(json.dumps({"hidden_size": None}), encoding="utf-8")
    assert "hidden_size" in await refused(ModelChoice(folder=copy, cache=tmp_path))


async def test_a_config_with_a_wrong_width_is_an_embedding_error(copy: Path, tmp_path: Path) -> None:
    (copy / "config.json").write_text(json.dumps({"hidden_size": 100, "pad_token_id": 1}), encoding="utf-8")
    own = await FastEmbedder.load(ModelChoice(folder=copy, cache=tmp_path))
    with pytest.raises(EmbeddingError):
        await own.embed_query("refund")
    await own.close()


async def test_an_unknown_model_is_named(tmp_path: Path) -> None:
    told = await refused(ModelChoice(name="no/such-model", cache=tmp_path))
    assert "no/such-model" in told
    assert "FOOTNOTE_EMBEDDING_MODEL" in told


async def test_without_the_hub_the_way_out_is_told_and_nothing_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    for variable in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(variable, raising=False)
    said: list[str] = []
    with pytest.raises(ModelNotFoundError, match="FOOTNOTE_EMBEDDING_MODEL_PATH"):
        await FastEmbedder.load(ModelChoice(name="BAAI/bge-small-en-v1.5", cache=tmp_path), said.append)
    assert "Downloading" in said[0]
    assert capfd.readouterr().err == ""


async def test_a_closed_model_says_so(copy: Path, tmp_path: Path) -> None:
    own = await FastEmbedder.load(ModelChoice(folder=copy, cache=tmp_path))
    await own.close()
    await own.close()
    with pytest.raises(EmbeddingError, match="closed"):
        await own.embed_query("refund")
    with pytest.raises(EmbeddingError, match="closed"):
        await own.embed_passages(["refund"])
