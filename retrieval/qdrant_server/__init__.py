"""Store on a Qdrant server or cluster, so that several processes share one library."""

from retrieval.qdrant_server.store import ServerStore, read_records

__all__ = ["ServerStore", "read_records"]
