"""LanguageModel on the anthropic SDK: Anthropic's own service, or any server that speaks the Messages API.

Two ways to cite, the same to whoever reads the stream: markers `[n]`, n being the hit's number in the prompt.

* `native`: the hits go as `search_result` blocks, the server attaches citations to the answer's text blocks, and each
  becomes a marker behind its block. The citable unit is a block, which is a whole hit, so `cited_text` tells nothing
  that the number does not, and is not handed on.
* `markers`: the hits go as numbered text, and the model writes the markers (see `bot.prompting`).

Servers that merely speak the API drop `search_result` blocks silently, and an answer without sources would look like
an abstention. `auto` therefore is native on Anthropic's own host; on any other it asks once, before the first answer,
for a code word that stands in a `search_result` block (some hundred tokens), and is native only if a citation comes
back. A refused block or a silent server means markers; a connection fault or a busy server is not remembered, so that
the next answer probes again. Markers are right on every server, so that a wrong "no" costs nothing but polish.

Only the system text is marked for the prompt cache: it is the same in every request, while the sources change with
every question, and writing them into the cache costs more than the rare second reading saves.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import aclosing
from typing import TYPE_CHECKING, Literal

import anthropic
import httpx2
from anthropic.types import CitationsSearchResultLocation, Message, TextBlock

from bot.claude.faults import names_model, no_key, not_an_api, refuse_long_waits, refused, translating
from bot.claude.stream import AnswerReader, Patience
from bot.errors import ModelUnavailableError
from bot.prompting import NO_ANSWER, ComposedPrompt, PromptLimits, compose, compose_condensing
from bot.types import ModelStop, ModelText

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from anthropic.types import MessageParam, RawMessageStreamEvent, SearchResultBlockParam, TextBlockParam
    from pydantic import SecretStr

    from bot.types import Conversation, Prompt

CitationMode = Literal["auto", "native", "markers"]

_OWN_URL = "https://api.anthropic.com"
_NO_KEY = "none"
"""Sent to servers of one's own that want no key: the SDK sends nothing without one."""
_CONNECT_SECONDS = 10.0
_SHORT_SECONDS = 20.0
"""For the small requests: condensing, probing, checking the model."""
_CONDENSED_TOKENS = 300
_CONDENSED_CHARACTERS = 1_000
_PROBE_WORD = "marmalade-417"


class Claude:
    """Claude, or a model behind a server that speaks the Messages API. Create it inside the event loop's thread."""

    def __init__(  # noqa: PLR0913 - the settings of one client, all by name
        self,
        *,
        api_key: SecretStr | str,
        model: str,
        base_url: str | None = None,
        max_tokens: int = 2_000,
        timeout: float = 120.0,
        stall: float = 45.0,
        citations: CitationMode = "auto",
        max_retries: int = 2,
        limits: PromptLimits | None = None,
    ) -> None:
        """Open nothing yet.

        Args:
            api_key: May be empty for servers of one's own that want none.
            model: The model's id.
            base_url: The server, with or without `/v1`; None is Anthropic's.
            max_tokens: The longest answer.
            timeout: Seconds that an answer may keep us waiting altogether, retries included.
            stall: Seconds between two events of a stream.
            citations: How to cite, see the head of the module.
            max_retries: How often the SDK tries again (connection faults, 408, 409, 429, 5xx).
            limits: How much goes into a prompt.

        Raises:
            ModelMisconfiguredError: The key or the address cannot be used at all.
        """
        self._model = model.strip()
        self._max_tokens = max_tokens
        self._timeout = timeout
        self._stall = stall
        self._limits = limits
        self._own = _is_own(base_url or _OWN_URL)
        self._native: bool | None = {"native": True, "markers": False, "auto": self._own or None}[citations]
        self._probing = asyncio.Lock()
        self._key = (api_key if isinstance(api_key, str) else api_key.get_secret_value()).strip()
        if (self._own and not self._key) or re.search(r"[^!-~]", self._key):
            # An unusable header would be quoted, key and all, in the error of the HTTP library.
            raise no_key()
        self._client = anthropic.AsyncAnthropic(
            api_key=self._key or _NO_KEY,
            base_url=(base_url or _OWN_URL).rstrip("/").removesuffix("/v1"),
            max_retries=max_retries,
            open_telemetry=False,
            http_client=anthropic.DefaultAsyncHttpxClient(
                timeout=httpx2.Timeout(timeout, connect=_CONNECT_SECONDS),
                event_hooks={"response": [refuse_long_waits]},
            ),
            timeout=httpx2.Timeout(timeout, connect=_CONNECT_SECONDS),
        )

    @property
    def name(self) -> str:
        """The model's id."""
        return self._model

    async def generate(self, prompt: Prompt) -> AsyncGenerator[ModelText | ModelStop]:
        """Stream the answer. Raises a LanguageModelError, also in mid-stream."""
        native = await self._cites_natively()
        composed = compose(prompt, style="native" if native else "markers", limits=self._limits)
        answer = AnswerReader()
        with translating(self._key):
            async with aclosing(self._events(composed, native=native)) as events:
                async for event in events:
                    if text := answer.read(event):
                        yield ModelText(text=text)
                    if event.type == "message_stop":
                        break
            if text := answer.rest():
                yield ModelText(text=text)
            yield answer.stop()

    async def condense(self, conversation: Conversation, question: str) -> str:
        """Rewrite a follow-up as a question that stands alone. Raises LanguageModelError."""
        if not conversation.turns and not conversation.remarks:
            return question
        system, user = compose_condensing(conversation, question, limits=self._limits)
        with translating(self._key):
            async with asyncio.timeout(min(self._timeout, _SHORT_SECONDS)):
                message = await self._client.messages.create(
                    model=self._model,
                    max_tokens=_CONDENSED_TOKENS,
                    system=system,
                    messages=[{"role": "user", "content": user}],
                )
            _require_message(message)
            if message.stop_reason == "refusal":
                raise refused()
            text = "".join(block.text for block in message.content if isinstance(block, TextBlock))
        condensed = text.strip().partition("\n")[0].strip().strip('"“”「」')
        unusable = not condensed or len(condensed) > _CONDENSED_CHARACTERS or NO_ANSWER in condensed
        if unusable or message.stop_reason == "max_tokens":
            msg = "The language model did not understand the follow-up. Please ask it as a whole question."
            raise ModelUnavailableError(msg)
        return condensed

    async def check(self) -> None:
        """Ask the server whether it has the model; quiet where it cannot tell. Raises LanguageModelError."""
        with translating(self._key):
            try:
                async with asyncio.timeout(_SHORT_SECONDS):
                    await self._client.models.retrieve(self._model or "-")
            except anthropic.NotFoundError as error:
                if self._own or names_model(error.body, self._model):
                    raise
            except anthropic.APIStatusError as error:
                if self._own or error.status_code not in {400, 405, 422, 501}:
                    raise

    async def close(self) -> None:
        """Let go of connections."""
        await self._client.close()

    async def _events(self, composed: ComposedPrompt, *, native: bool) -> AsyncGenerator[RawMessageStreamEvent, None]:
        patience = Patience(total=self._timeout, stall=self._stall)
        system: TextBlockParam = {"type": "text", "text": composed.system, "cache_control": {"type": "ephemeral"}}
        stream = await patience.wait(
            self._client.messages.create(
                model=self._model,
                max_tokens=self._max_tokens,
                system=[system],
                messages=[_native_message(composed) if native else {"role": "user", "content": composed.user}],
                stream=True,
            ),
            first=True,
        )
        try:
            if "event-stream" not in stream.response.headers.get("content-type", ""):
                raise not_an_api()
            events = aiter(stream)
            while (event := await patience.wait(anext(events, None))) is not None:
                yield event
        finally:
            await stream.close()

    async def _cites_natively(self) -> bool:
        if self._native is None:
            async with self._probing:
                if self._native is None:
                    return await self._probe()
        return self._native

    async def _probe(self) -> bool:
        """See the head of the module. Keeps what it learns in `_native`."""
        block = _search_result("1", "Code word", f"The code word is {_PROBE_WORD}.")
        task: TextBlockParam = {"type": "text", "text": "What is the code word? Answer in one short sentence."}
        try:
            async with asyncio.timeout(min(self._timeout, _SHORT_SECONDS)):
                message: object = await self._client.with_options(max_retries=0).messages.create(
                    model=self._model, max_tokens=100, messages=[{"role": "user", "content": [block, task]}]
                )
        except (anthropic.RateLimitError, anthropic.OverloadedError, anthropic.APIConnectionError):
            return False
        except (anthropic.AnthropicError, httpx2.HTTPError, TimeoutError, ValueError):
            self._native = False
            return False
        self._native = isinstance(message, Message) and any(
            isinstance(citation, CitationsSearchResultLocation)
            for content in message.content or ()
            if isinstance(content, TextBlock)
            for citation in content.citations or ()
        )
        return self._native


def _is_own(url: str) -> bool:
    """Is it Anthropic's own service? Raises ModelMisconfiguredError when it is no address at all."""
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise not_an_api() from error
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        raise not_an_api()
    return parsed.host.endswith(".anthropic.com")


def _native_message(composed: ComposedPrompt) -> MessageParam:
    blocks: list[SearchResultBlockParam | TextBlockParam] = [
        _search_result(
            str(passage.number), ", ".join(filter(None, (passage.title, passage.where))) or "-", passage.text or "-"
        )
        for passage in composed.passages
    ]
    return {"role": "user", "content": [*blocks, {"type": "text", "text": composed.task}]}


def _search_result(source: str, title: str, text: str) -> SearchResultBlockParam:
    return {
        "type": "search_result",
        "source": source,
        "title": title,
        "content": [{"type": "text", "text": text}],
        "citations": {"enabled": True},
    }


def _require_message(message: object) -> None:
    """The SDK hands out whatever a server says; a login page, for example, as a string."""
    if not isinstance(message, Message) or not isinstance(message.content, list):
        raise not_an_api()
