"""A server on loopback that speaks the Messages API, with the faults that real ones show.

Without a script it answers like a model that can do one thing: it repeats the sources that share a long word with the
question, each cited, or replies `NO_ANSWER`; asked to rewrite a question, it repeats it. `replies` scripts the next
requests; `requests` keeps what came in.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Self

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Block:
    """A text block of an answer; `cites` are indexes of search results, from 0."""

    text: str
    cites: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Reply:
    """An answer, streamed or whole as the request wants, up to the way it ends."""

    blocks: tuple[Block, ...]
    stop_reason: str = "end_turn"
    ending: Literal["end", "stall", "cut", "close", "error", "garbage", "no_message_stop"] = "end"
    """After the first block: hang, break the connection, end the stream, send an error event, send broken JSON.
    `no_message_stop` sends everything but the last event."""
    error: str = "overloaded_error"
    piece: int = 7
    """Characters a delta."""
    pause: float = 0.0
    """Seconds before each event."""
    content_type: str = "text/event-stream"


@dataclass(frozen=True, kw_only=True)
class Fault:
    """An answer that is none."""

    status: int
    kind: str = "api_error"
    message: str = "something is wrong"
    headers: tuple[tuple[str, str], ...] = ()
    body: str | None = None
    """Sent as it is, as HTML, in place of the error object."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What came in."""

    path: str
    headers: dict[str, str]
    body: Json

    @property
    def blocks(self) -> list[Json]:
        content = self.body["messages"][-1]["content"]
        return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)

    @property
    def text(self) -> str:
        return "\n".join(block["text"] for block in self.blocks if block["type"] == "text")

    @property
    def search_results(self) -> list[Json]:
        return [block for block in self.blocks if block["type"] == "search_result"]


def say(*texts: str | Block, **fields: object) -> Reply:
    """A reply of these blocks."""
    blocks = tuple(text if isinstance(text, Block) else Block(text=text) for text in texts)
    return Reply(blocks=blocks, **fields)  # type: ignore[arg-type]  # names are checked by Reply


@dataclass(kw_only=True)
class MessagesApi:
    """`async with MessagesApi() as server`; its address is `server.url`."""

    native: bool = True
    """False: it merely speaks the API and drops `search_result` blocks silently."""
    models: set[str] | None = field(default_factory=lambda: {"claude-test"})
    """None: it has no route for models."""
    key: str | None = None
    """The only key that is let in; None lets everybody in."""
    replies: deque[Reply | Fault] = field(default_factory=deque)
    """For streamed requests."""
    whole_replies: deque[Reply | Fault] = field(default_factory=deque)
    """For requests that want the answer in one piece."""
    requests: list[Request] = field(default_factory=list)
    url: str = ""
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once a request for a message has come in."""
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once a client has hung up on a stalled stream."""

    async def __aenter__(self) -> Self:
        self._closing = asyncio.Event()
        app = web.Application()
        app.router.add_post("/v1/messages", self._messages)
        app.router.add_get("/v1/models/{id}", self._model)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closing.set()
        await self._runner.cleanup()

    @property
    def streamed(self) -> list[Request]:
        return [request for request in self.requests if request.body.get("stream")]

    @property
    def whole(self) -> list[Request]:
        return [request for request in self.requests if request.body and not request.body.get("stream")]

    async def _messages(self, http: web.Request) -> web.StreamResponse:
        request = Request(path=http.path, headers=dict(http.headers), body=await http.json())
        self.requests.append(request)
        self.asked.set()
        if (refusal := self._unauthorized(http)) is not None:
            return refusal
        streamed = bool(request.body.get("stream"))
        queue = self.replies if streamed else self.whole_replies
        reply = queue.popleft() if queue else self._answer(request)
        if isinstance(reply, Fault):
            return _fault(reply)
        if not streamed:
            return _whole(reply, request)
        return await self._stream(http, request, reply)

    def _unauthorized(self, http: web.Request) -> web.Response | None:
        if self.key is None or http.headers.get("Authorization") == f"Bearer {self.key}":
            return None
        return _fault(Fault(status=401, kind="authentication_error"))

    async def _model(self, http: web.Request) -> web.Response:
        self.requests.append(Request(path=http.path, headers=dict(http.headers), body={}))
        if (refusal := self._unauthorized(http)) is not None:
            return refusal
        model = http.match_info["id"]
        if self.models is None:
            raise web.HTTPNotFound
        if model not in self.models:
            return _fault(Fault(status=404, kind="not_found_error", message=f"model: {model}"))
        fields = {"display_name": model, "created_at": "2026-01-01T00:00:00Z", "lifecycle": "active"}
        return web.json_response({"type": "model", "id": model, **fields})

    def _answer(self, request: Request) -> Reply:
        """The one thing the model behind it can do."""
        if request.search_results and self.native:
            sources = [result["content"][0]["text"] for result in request.search_results]
        else:
            sources = re.findall(r'<source n="\d+">\n.*?\n\n(.*?)\n</source>', request.text, re.DOTALL)
        asked = re.search(r"<question>\n(.*?)\n</question>", request.text, re.DOTALL)
        if asked and not request.body.get("stream"):
            return say(asked[1])
        words = _long_words(asked[1] if asked else request.text)
        telling = [index for index, text in enumerate(sources) if words & _long_words(text)]
        if not telling:
            return say("NO_ANSWER")
        if request.search_results:
            return say(*(Block(text=f"{sources[index]}\n", cites=(index,)) for index in telling))
        return say("\n".join(f"{sources[index]} [{index + 1}]" for index in telling))

    async def _stream(self, http: web.Request, request: Request, reply: Reply) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": reply.content_type, "Cache-Control": "no-cache"})
        await response.prepare(http)
        try:
            async for event in self._paced(reply, request):
                name = event["type"]
                await response.write(f"event: {name}\ndata: {json.dumps(event)}\n\n".encode())
            match reply.ending:
                case "stall":
                    await self._until_gone(http)
                case "cut":
                    assert http.transport is not None
                    http.transport.abort()
                case "error":
                    event = {"type": "error", "error": {"type": reply.error, "message": "Overloaded"}}
                    await response.write(f"event: error\ndata: {json.dumps(event)}\n\n".encode())
                case "garbage":
                    await response.write(b'event: content_block_delta\ndata: {"type": "content_bl\n\n')
                case _:
                    pass
            await response.write_eof()
        except ConnectionError:
            pass  # the client has gone, as some tests want
        return response

    async def _until_gone(self, http: web.Request) -> None:
        while not self._closing.is_set():
            if http.transport is None or http.transport.is_closing():
                self.left.set()
                return
            await asyncio.sleep(0.02)  # the transport tells nobody that it closes

    async def _paced(self, reply: Reply, request: Request) -> AsyncIterator[Json]:
        for event in _events(reply, request, cites=self.native):
            if reply.pause:
                await asyncio.sleep(reply.pause)
            yield event


def _events(reply: Reply, request: Request, *, cites: bool) -> Iterator[Json]:
    usage = {"input_tokens": 100, "cache_read_input_tokens": 20, "output_tokens": 1}
    message = _message((), request) | {"stop_reason": None, "usage": usage}
    yield {"type": "message_start", "message": message}
    whole = reply.ending in {"end", "no_message_stop"}
    for index, block in enumerate(reply.blocks if whole else reply.blocks[:1]):
        yield {"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}}
        yield {"type": "ping"}
        for start in range(0, len(block.text), reply.piece):
            delta: Json = {"type": "text_delta", "text": block.text[start : start + reply.piece]}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        for cited in block.cites if cites else ():
            delta = {"type": "citations_delta", "citation": _citation(cited, request)}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        if whole:
            yield {"type": "content_block_stop", "index": index}
    if whole:
        delta = {"stop_reason": reply.stop_reason, "stop_sequence": None}
        yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 42}}
    if reply.ending == "end":
        yield {"type": "message_stop"}


def _citation(index: int, request: Request) -> Json:
    results = request.search_results
    found: Json = results[index] if index < len(results) else {"source": "?", "title": "?", "content": [{"text": "?"}]}
    return {
        "type": "search_result_location",
        "search_result_index": index,
        "source": found["source"],
        "title": found["title"],
        "cited_text": found["content"][0]["text"],
        "start_block_index": 0,
        "end_block_index": 1,
    }


def _message(content: tuple[Json, ...], request: Request) -> Json:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": request.body["model"],
        "content": list(content),
        "stop_sequence": None,
    }


def _whole(reply: Reply, request: Request) -> web.Response:
    content = tuple(
        {"type": "text", "text": block.text, "citations": [_citation(index, request) for index in block.cites] or None}
        for block in reply.blocks
    )
    if reply.content_type == "text/html":
        return web.Response(text="<html>Log in</html>", content_type="text/html")
    usage = {"input_tokens": 100, "output_tokens": 42}
    return web.json_response(_message(content, request) | {"stop_reason": reply.stop_reason, "usage": usage})


def _fault(fault: Fault) -> web.Response:
    if fault.body is not None:
        return web.Response(status=fault.status, text=fault.body, content_type="text/html", headers=dict(fault.headers))
    body = {"type": "error", "error": {"type": fault.kind, "message": fault.message}}
    return web.json_response(body, status=fault.status, headers=dict(fault.headers))


def _long_words(text: str) -> set[str]:
    return {word.casefold() for word in re.findall(r"\w{4,}", text)}
