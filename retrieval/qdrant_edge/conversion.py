"""Conditions, points and vectors in the embedded engine's own types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import qdrant_edge as edge

from retrieval.points import AUDIENCE, BM25, DENSE, DOCUMENT, STAGED_AT, TYPE, VERSION, StoredPoint, Where, scopes

if TYPE_CHECKING:
    from retrieval.types import SparseVector


def shard_config(dimensions: int) -> edge.EdgeConfig:
    """How a shard for vectors of this size is made."""
    return edge.EdgeConfig(
        vectors={DENSE: edge.EdgeVectorParams(size=dimensions, distance=edge.Distance.Cosine)},
        sparse_vectors={BM25: edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)},
        optimizers=edge.EdgeOptimizersConfig(indexing_threshold=0),  # 0: no graph, see the module's docstring
        wal_enabled=True,
    )


def filter_of(where: Where) -> edge.Filter:
    """The points that the conditions let through."""
    must: list[Any] = []
    for key, value in ((TYPE, where.type), (DOCUMENT, where.document_id), (VERSION, where.version)):
        if value is not None:
            must.append(edge.FieldCondition(key, match=edge.MatchValue(value)))
    if where.audience is not None:
        allowed = scopes(where.audience)
        # The engine tests one value more than twice as fast as a list of one.
        match = edge.MatchValue(allowed[0]) if len(allowed) == 1 else edge.MatchAny(allowed)
        must.append(edge.FieldCondition(AUDIENCE, match=match))
    if where.staged_before is not None:
        must.append(edge.FieldCondition(STAGED_AT, range=edge.RangeFloat(lt=where.staged_before)))
    if where.ids is not None:
        must.append(edge.HasIdCondition(set(where.ids)))
    must_not: list[Any] = [edge.FieldCondition(VERSION, match=edge.MatchAny(sorted(where.not_versions)))]
    return edge.Filter(must=must, must_not=must_not if where.not_versions else None)


def point_of(point: StoredPoint) -> edge.Point:
    """A point as the engine takes it."""
    vectors: dict[str, Any] = {}
    if point.dense is not None:
        vectors[DENSE] = point.dense.tolist()
    if point.sparse is not None and point.sparse.indices:
        vectors[BM25] = sparse_of(point.sparse)
    return edge.Point(point.id, vectors, point.payload)


def sparse_of(vector: SparseVector) -> edge.SparseVector:
    """A sparse vector as the engine takes it."""
    return edge.SparseVector(list(vector.indices), list(vector.values))


def weights_of(vector: object) -> dict[int, float]:
    """The weight of each term in a point's BM25 vector, by term; empty when it has none."""
    named = vector.get(BM25) if isinstance(vector, dict) else None
    return dict(zip(named.indices, named.values, strict=True)) if isinstance(named, edge.SparseVector) else {}
