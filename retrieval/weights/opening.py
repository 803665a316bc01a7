"""Opens fastembed's models: from a folder, from the packaged weights, from the hub's cache or the hub."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from fastembed import TextEmbedding
from fastembed.common import model_management
from fastembed.common.model_description import ModelSource, PoolingType
from fastembed.text.custom_text_embedding import CustomTextEmbedding
from typing_extensions import override

from retrieval.errors import ModelChoiceError, ModelNotFoundError
from retrieval.weights import MODEL_FILE, graph_in, packaged_folder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fastembed.common.model_description import DenseModelDescription
    from onnxruntime import SessionOptions

DEFAULT_MODEL: Final = "multilingual-e5-small"
_DEFAULT_DIMENSIONS: Final = 384
_DEFAULT_HUB: Final = ModelSource(hf="intfloat/multilingual-e5-small")
_HUB_FILE: Final = "onnx/model.onnx"
_SLEEP: Final = "sleep_after_runs"
_SAMPLES: Final = 16
_SAMPLE_BYTES: Final = 65_536


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


class _QuietEmbedding(CustomTextEmbedding):
    """A custom model whose threads sleep as soon as a run ends, and that keeps no plans of memory.

    ONNX Runtime lets them spin for a while, which takes the processor away from the search that follows.
    """

    EXPOSED_SESSION_OPTIONS = ("enable_cpu_mem_arena", _SLEEP)  # type: ignore[assignment]  # typed as one name

    @classmethod
    @override
    def add_extra_session_options(cls, session_options: SessionOptions, extra_options: dict[str, Any]) -> None:
        super().add_extra_session_options(session_options, extra_options)
        if extra_options.get(_SLEEP):
            session_options.add_session_config_entry("session.force_spinning_stop", "1")
            # A plan of memory for every shape of batch would be kept: a sixth more memory, and no time saved.
            session_options.enable_mem_pattern = False


def open_model(choice: ModelChoice, announce: Callable[[str], None]) -> tuple[TextEmbedding, str]:
    """The loaded model and its name for the library. Takes seconds. Raises ModelNotFoundError with what to do."""
    if choice.folder is not None:
        engine, fingerprint = _open_folder(choice, choice.folder)
        return engine, f"{choice.name} ({fingerprint})"
    if choice.name == DEFAULT_MODEL:
        packaged = packaged_folder(choice.cache, announce)
        if packaged is not None:
            return _open_packaged(choice, packaged), DEFAULT_MODEL
    return _open_hub(choice, announce), choice.name


def _open_folder(choice: ModelChoice, folder: Path) -> tuple[TextEmbedding, str]:
    """The model in an operator's folder, and its fingerprint."""
    known = _description(choice.name)
    graph = graph_in(folder, (MODEL_FILE, _HUB_FILE) if known is None else (known.model_file,))
    try:
        fingerprint = _fingerprint(folder, graph)
    except OSError as error:
        message = f"The model folder {folder} (FOOTNOTE_EMBEDDING_MODEL_PATH) cannot be read. Check who owns its files."
        raise ModelChoiceError(message) from error
    name = choice.name
    if known is None:
        width = _width(folder)
        name = f"{choice.name} {fingerprint} {graph} {width}"
        _register(name, graph, width)
    advice = f"Check that {folder} (FOOTNOTE_EMBEDDING_MODEL_PATH) holds the whole files of one exported ONNX model."
    try:
        return _open(name, choice, advice, specific_model_path=str(folder)), fingerprint
    except ModelNotFoundError as error:
        raise ModelChoiceError(str(error)) from error


def _open_packaged(choice: ModelChoice, folder: Path) -> TextEmbedding:
    name = f"{DEFAULT_MODEL}-packaged"
    _register(name, MODEL_FILE, _DEFAULT_DIMENSIONS)
    advice = f"Delete the folder {folder}; the model is then prepared anew at the next start."
    return _open(name, choice, advice, specific_model_path=str(folder))


def _open_hub(choice: ModelChoice, announce: Callable[[str], None]) -> TextEmbedding:
    """The model from the hub's cache, else from the hub.

    Two steps of fastembed in place of its one, which tries again for most of a minute when there is no network.
    """
    name = choice.name
    if name == DEFAULT_MODEL:
        name = f"{DEFAULT_MODEL}-hub"
        _register(name, _HUB_FILE, _DEFAULT_DIMENSIONS)
    known = _description(name)
    if known is None:
        message = (
            f"There is no embedding model called {choice.name}. FOOTNOTE_EMBEDDING_MODEL takes {DEFAULT_MODEL} or a "
            "name from fastembed's list of supported models."
        )
        raise ModelChoiceError(message)
    advice = (
        "Without access to the model hub, set FOOTNOTE_EMBEDDING_MODEL_PATH to a folder that holds it, or use the "
        "packaged weights (Linux on x86-64)."
    )
    try:
        return _open(name, choice, advice, local_files_only=True)
    except ModelNotFoundError:
        announce(f"Downloading the embedding model {choice.name} (once, {known.size_in_GB or 0.5:.1g} GB) …")
    try:
        TextEmbedding.download_files_from_huggingface(
            known.sources.hf or "", str(choice.cache), [known.model_file, *known.additional_files]
        )
    except Exception as error:  # the hub's client raises its own and those of its HTTP library
        message = f"The embedding model {choice.name} could not be downloaded. {advice}"
        raise ModelNotFoundError(message) from error
    return _open(name, choice, advice, local_files_only=True)


def _open(
    name: str,
    choice: ModelChoice,
    advice: str,
    *,
    specific_model_path: str | None = None,
    local_files_only: bool = False,
) -> TextEmbedding:
    # It prints what goes wrong; that is told in our own words.
    model_management.logger.disable("fastembed")  # type: ignore[attr-defined]  # loguru's, which has no other way in
    try:
        return TextEmbedding(
            model_name=name,
            cache_dir=str(choice.cache),
            threads=choice.threads,
            specific_model_path=specific_model_path,
            local_files_only=local_files_only,
            sleep_after_runs=True,  # an option of ours, which other classes ignore
        )
    except Exception as error:  # the hub's client, the file system and ONNX Runtime each raise their own
        message = f"The embedding model {choice.name} could not be loaded. {advice}"
        raise ModelNotFoundError(message) from error


def _register(name: str, graph: str, width: int) -> None:
    """Tell fastembed of an E5 model, or one like it; a name that it knows already stays as it is."""
    if _description(name) is None:
        TextEmbedding.add_custom_model(
            model=name,
            pooling=PoolingType.MEAN,
            normalization=True,
            sources=_DEFAULT_HUB,
            dim=width,
            model_file=graph,
        )
    if _QuietEmbedding not in TextEmbedding.EMBEDDINGS_REGISTRY:
        # Before the class that it extends, with which it shares the list of custom models.
        TextEmbedding.EMBEDDINGS_REGISTRY.insert(0, _QuietEmbedding)


def _description(name: str) -> DenseModelDescription | None:
    """What fastembed knows of a model."""
    models = TextEmbedding._list_supported_models()  # noqa: SLF001 - the public list drops the types
    return next((model for model in models if model.model.casefold() == name.casefold()), None)


def _fingerprint(folder: Path, graph: str) -> str:
    """Eight hex digits that tell one model folder from another, from the vocabulary and samples of the weights."""
    digest = hashlib.sha256((folder / "tokenizer.json").read_bytes())
    # Beside the graph may lie its weights (`model.onnx_data`).
    for path in sorted((folder / graph).parent.glob(f"{(folder / graph).name}*")):
        size = path.stat().st_size
        digest.update(str(size).encode())
        with path.open("rb") as file:
            for sample in range(_SAMPLES):
                file.seek(max(0, size - _SAMPLE_BYTES) * sample // (_SAMPLES - 1))
                digest.update(file.read(_SAMPLE_BYTES))
    return digest.hexdigest()[:8]


def _width(folder: Path) -> int:
    """The hidden size in the folder's `config.json`."""
    try:
        return int(json.loads((folder / "config.json").read_text(encoding="utf-8"))["hidden_size"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = (
            f"The file config.json in {folder} (FOOTNOTE_EMBEDDING_MODEL_PATH) does not tell the model's hidden_size."
        )
        raise ModelChoiceError(message) from error
