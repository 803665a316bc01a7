"""Store inside this process, on Qdrant Edge: the default, needs no server.

A library is a folder (`retrieval.library_folder`) with one shard in it.
"""

from retrieval.qdrant_edge.store import EdgeStore, read_records

__all__ = ["EdgeStore", "read_records"]
