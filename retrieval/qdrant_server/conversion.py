"""Conditions, points, vectors and searches in the types of the server's client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from qdrant_client import models

from retrieval.points import (
    AUDIENCE,
    BM25,
    DENSE,
    DOCUMENT,
    PLACE,
    STAGED_AT,
    TYPE,
    VERSION,
    FoundPoint,
    StoredPoint,
    Where,
    scopes,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from retrieval.types import SparseVector


def nearest(
    vector: list[float] | models.SparseVector | None, name: str, limit: int, where: Where | None
) -> models.QueryRequest | None:
    """A search by one vector; without conditions, only the BM25 vectors of what is found are of interest."""
    if vector is None or (where is not None and where.ids is not None and not where.ids):
        return None
    return models.QueryRequest(
        query=vector,
        using=name,
        filter=None if where is None else filter_of(where),
        limit=limit,
        with_payload=[*PLACE] if where is not None and where.ids is None else False,
        with_vector=[BM25] if where is None else False,
    )


def filter_of(where: Where) -> models.Filter:
    """The points that the conditions let through."""
    must: list[models.Condition] = [
        models.FieldCondition(key=key, match=models.MatchValue(value=value))
        for key, value in ((TYPE, where.type), (DOCUMENT, where.document_id), (VERSION, where.version))
        if value is not None
    ]
    if where.audience is not None:
        must.append(models.FieldCondition(key=AUDIENCE, match=models.MatchAny(any=scopes(where.audience))))
    if where.staged_before is not None:
        must.append(models.FieldCondition(key=STAGED_AT, range=models.Range(lt=where.staged_before)))
    if where.ids is not None:
        must.append(models.HasIdCondition(has_id=[*sorted(where.ids)]))
    hidden: list[models.Condition] = [
        models.FieldCondition(key=VERSION, match=models.MatchAny(any=sorted(where.not_versions)))
    ]
    return models.Filter(must=must, must_not=hidden if where.not_versions else None)


def point_of(point: StoredPoint) -> models.PointStruct:
    """A point as the server takes it."""
    vectors: dict[str, Any] = {}
    if point.dense is not None:
        vectors[DENSE] = point.dense.tolist()
    if point.sparse is not None and point.sparse.indices:
        vectors[BM25] = sparse_of(point.sparse)
    return models.PointStruct(id=point.id, vector=vectors, payload=point.payload)


def sparse_of(vector: SparseVector) -> models.SparseVector:
    """A sparse vector as the server takes it."""
    return models.SparseVector(indices=list(vector.indices), values=list(vector.values))


def found_of(point: models.ScoredPoint) -> FoundPoint:
    """A point that a search found."""
    return FoundPoint(id=str(point.id), payload=point.payload or {}, score=point.score)


def weights_of(vector: object) -> dict[int, float]:
    """The weight of each term in a point's BM25 vector, by term; empty when it has none."""
    named = vector.get(BM25) if isinstance(vector, dict) else None
    return dict(zip(named.indices, named.values, strict=True)) if isinstance(named, models.SparseVector) else {}


def idf_of(term: int, points: Sequence[models.ScoredPoint]) -> float | None:
    """Score / weight of any point with the term."""
    return points[0].score / weights_of(points[0].vector)[term] if points else None
