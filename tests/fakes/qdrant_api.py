"""A server that speaks the part of Qdrant's REST interface that the store uses, over real HTTP.

It answers in the shapes of the real server and leaves the behaviour to the client library's own local mode. `fail`
makes the next answers fail; `delay` makes every answer slow.
"""

from __future__ import annotations

import asyncio
import warnings
from typing import TYPE_CHECKING, Self

from aiohttp import web
from pydantic import BaseModel
from qdrant_client import AsyncQdrantClient, models

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

API_KEY = "a-key"


class QdrantApi:
    def __init__(self, *, api_key: str | None = None) -> None:
        self.local = AsyncQdrantClient(":memory:")
        self.api_key = api_key
        self.fail: list[int] = []
        self.delay = 0.0
        self.requests: list[str] = []
        self._news = asyncio.Condition()
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def __aenter__(self) -> Self:
        app = web.Application(middlewares=[self._gate], client_max_size=64 * 1024 * 1024)
        one = "/collections/{name}"
        routes: list[tuple[str, str, Callable[[web.Request], Awaitable[object]]]] = [
            ("GET", "/collections", self._collections),
            ("GET", "/aliases", self._aliases),
            ("POST", "/collections/aliases", self._move_aliases),
            ("PUT", one, self._create),
            ("DELETE", one, self._drop),
            ("PUT", f"{one}/index", self._index),
            ("PUT", f"{one}/points", self._upsert),
            ("POST", f"{one}/points", self._retrieve),
            ("POST", f"{one}/points/delete", self._delete),
            ("POST", f"{one}/points/payload", self._set_payload),
            ("POST", f"{one}/points/scroll", self._scroll),
            ("POST", f"{one}/points/count", self._count),
            ("POST", f"{one}/points/query/batch", self._query),
        ]
        for method, path, handler in routes:
            app.router.add_route(method, path, self._answering(handler))
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()
        await self.local.close()

    async def seen(self, method: str, ending: str, *, times: int) -> None:
        """Wait until so many such requests have come in."""

        def enough() -> bool:
            return sum(r.startswith(method) and r.endswith(ending) for r in self.requests) >= times

        async with asyncio.timeout(20), self._news:
            await self._news.wait_for(enough)

    @web.middleware
    async def _gate(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        async with self._news:
            self.requests.append(f"{request.method} {request.path}")
            self._news.notify_all()
        if self.delay:
            await asyncio.sleep(self.delay)
        if self.fail:
            return _error(self.fail.pop(0), "told to fail")
        if self.api_key is not None and request.headers.get("api-key") != self.api_key:
            return web.Response(status=401, text="Must provide an API key or an Authorization bearer token")
        return await handler(request)

    def _answering(
        self, handler: Callable[[web.Request], Awaitable[object]]
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def answer(request: web.Request) -> web.Response:
            try:
                with warnings.catch_warnings():
                    warnings.filterwarnings("ignore", message="Payload indexes have no effect")
                    result = await handler(request)
            except ValueError as error:
                status = 404 if "not found" in str(error) else 409 if "already exists" in str(error) else 400
                return _error(status, str(error))
            return web.json_response({"result": _plain(result), "status": "ok", "time": 0.001})

        return answer

    async def _collections(self, request: web.Request) -> object:
        return await self.local.get_collections()

    async def _aliases(self, request: web.Request) -> object:
        return await self.local.get_aliases()

    async def _move_aliases(self, request: web.Request) -> object:
        moves = models.ChangeAliasesOperation.model_validate(await request.json())
        return await self.local.update_collection_aliases(moves.actions)

    async def _create(self, request: web.Request) -> object:
        wanted = models.CreateCollection.model_validate(await request.json())
        return await self.local.create_collection(
            request.match_info["name"], vectors_config=wanted.vectors, sparse_vectors_config=wanted.sparse_vectors
        )

    async def _drop(self, request: web.Request) -> object:
        return await self.local.delete_collection(request.match_info["name"])

    async def _index(self, request: web.Request) -> object:
        wanted = models.CreateFieldIndex.model_validate(await request.json())
        return await self.local.create_payload_index(request.match_info["name"], wanted.field_name, wanted.field_schema)

    async def _upsert(self, request: web.Request) -> object:
        wanted = models.PointsList.model_validate(await request.json())
        return await self.local.upsert(request.match_info["name"], wanted.points)

    async def _retrieve(self, request: web.Request) -> object:
        wanted = models.PointRequest.model_validate(await request.json())
        return await self.local.retrieve(
            request.match_info["name"],
            wanted.ids,
            with_payload=wanted.with_payload,
            with_vectors=wanted.with_vector or False,
        )

    async def _delete(self, request: web.Request) -> object:
        body = await request.json()
        kind = models.FilterSelector if "filter" in body else models.PointIdsList
        return await self.local.delete(request.match_info["name"], kind.model_validate(body))

    async def _set_payload(self, request: web.Request) -> object:
        wanted = models.SetPayload.model_validate(await request.json())
        return await self.local.set_payload(request.match_info["name"], wanted.payload, wanted.filter)

    async def _scroll(self, request: web.Request) -> object:
        wanted = models.ScrollRequest.model_validate(await request.json())
        points, offset = await self.local.scroll(
            request.match_info["name"],
            scroll_filter=wanted.filter,
            limit=wanted.limit or 10,
            offset=wanted.offset,
            with_payload=bool(wanted.with_payload),
        )
        return {"points": points, "next_page_offset": offset}

    async def _count(self, request: web.Request) -> object:
        wanted = models.CountRequest.model_validate(await request.json())
        return await self.local.count(request.match_info["name"], count_filter=wanted.filter, exact=True)

    async def _query(self, request: web.Request) -> object:
        wanted = models.QueryRequestBatch.model_validate(await request.json())
        return await self.local.query_batch_points(request.match_info["name"], wanted.searches)


def _error(status: int, text: str) -> web.Response:
    return web.json_response({"status": {"error": text}, "time": 0.0}, status=status)


def _plain(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
