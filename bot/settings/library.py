"""Where everything lies, how documents are read and searched."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import platformdirs
from pydantic import AnyHttpUrl, BaseModel, Field, SecretStr, field_validator


class LibrarySettings(BaseModel):
    """Where everything lies, how documents are read and searched."""

    home: Annotated[
        Path,
        Field(
            validation_alias="FOOTNOTE_HOME",
            default_factory=lambda: Path(platformdirs.user_data_dir("footnote", appauthor=False)),
            description="Folder for everything that is kept: the library, the state and the prepared model.",
        ),
    ]
    embedding_model: Annotated[
        str,
        Field(
            validation_alias="FOOTNOTE_EMBEDDING_MODEL",
            min_length=1,
            description="Embedding model: multilingual-e5-small, or any that fastembed supports.",
        ),
    ] = "multilingual-e5-small"
    embedding_model_path: Annotated[
        Path | None,
        Field(
            validation_alias="FOOTNOTE_EMBEDDING_MODEL_PATH",
            description="Folder with the embedding model's ONNX files; looked at before packaged weights and hub.",
        ),
    ] = None
    embedding_threads: Annotated[
        int | None,
        Field(
            validation_alias="FOOTNOTE_EMBEDDING_THREADS",
            ge=1,
            le=256,
            description="Processor threads for one run of the embedding model; all cores when not set.",
        ),
    ] = None
    qdrant_url: Annotated[
        AnyHttpUrl | None,
        Field(
            validation_alias="QDRANT_URL",
            repr=False,  # it may hold a password
            description="Qdrant server that holds the library for many processes.",
            examples=["http://localhost:6333"],
        ),
    ] = None
    qdrant_api_key: Annotated[
        SecretStr | None, Field(validation_alias="QDRANT_API_KEY", description="Key of that server.")
    ] = None
    qdrant_collection: Annotated[
        str,
        Field(
            validation_alias="QDRANT_COLLECTION",
            pattern=r"^[A-Za-z0-9_-]{1,100}$",
            description="Name of the library on that server.",
        ),
    ] = "footnote"
    max_file_megabytes: Annotated[
        int, Field(validation_alias="FOOTNOTE_MAX_FILE_MB", ge=1, le=4_096, description="Largest document, in MB.")
    ] = 100
    max_pages: Annotated[
        int, Field(validation_alias="FOOTNOTE_MAX_PAGES", ge=1, le=100_000, description="Most pages of a document.")
    ] = 5_000
    read_seconds: Annotated[
        float,
        Field(
            validation_alias="FOOTNOTE_READ_SECONDS",
            gt=0,
            le=3_600,
            description="Longest time to read one document.",
        ),
    ] = 60.0

    @field_validator("home", "embedding_model_path", mode="after")
    @classmethod
    def _absolute(cls, path: Path | None) -> Path | None:
        try:
            return None if path is None else path.expanduser().absolute()
        except RuntimeError as error:
            message = "there is no such user"
            raise ValueError(message) from error
