"""Everything that can go wrong in `retrieval`.

    RetrievalError                 the base; `str(error)` is a sentence that a user may read
    ├── ReadError                  a document could not be read
    │   ├── UnsupportedFormatError     no reader for these bytes
    │   ├── EmptyDocumentError         read well, but holds no text
    │   ├── EncryptedDocumentError     needs a password
    │   ├── CorruptDocumentError       damaged, truncated, cyclic
    │   ├── DocumentTooLargeError      over one of the limits
    │   └── ReadTimeoutError           took longer than a document may
    ├── EmbeddingError             the embedding model failed
    │   └── ModelNotFoundError         no weights in any of the places looked in
    │       └── ModelChoiceError           the model or the folder that was set is none
    └── StoreError                 the store failed
        ├── StoreLockedError           another process owns the embedded store
        ├── StoreMismatchError         built with another model, chunker or schema
        ├── StoreAbsentError           there is no library yet
        └── StoreUnavailableError      the server does not answer

A message names the thing, the reason and what to do next; it never holds a traceback, a secret or a foreign
exception's text. The foreign exception is chained (`raise … from error`) for the log.
"""

from __future__ import annotations


class RetrievalError(Exception):
    """Base of the tree."""


class ReadError(RetrievalError):
    """A document could not be read."""


class UnsupportedFormatError(ReadError):
    """There is no reader for these bytes."""


class EmptyDocumentError(ReadError):
    """The document was read and holds no text."""


class EncryptedDocumentError(ReadError):
    """The document needs a password."""


class CorruptDocumentError(ReadError):
    """The document is damaged, truncated or refers to itself."""


class DocumentTooLargeError(ReadError):
    """The document is over a limit (bytes, pages, characters)."""


class ReadTimeoutError(ReadError):
    """Reading took longer than a document may take."""


class EmbeddingError(RetrievalError):
    """The embedding model failed."""


class ModelNotFoundError(EmbeddingError):
    """The model's weights are in none of the places looked in."""


class ModelChoiceError(ModelNotFoundError):
    """The model's name or folder, as set, is none that can be used: whoever set it has to act."""


class StoreError(RetrievalError):
    """The store failed."""


class StoreLockedError(StoreError):
    """Another process owns the embedded store's folder."""


class StoreMismatchError(StoreError):
    """The library was built with another model, chunker or schema."""


class StoreAbsentError(StoreError):
    """There is no library yet, and none was to be made."""


class StoreUnavailableError(StoreError):
    """The store's server does not answer or refuses us."""
