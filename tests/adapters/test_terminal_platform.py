"""Replies of the terminal: in line for the screen, acknowledged by it, and asked for again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from fakes.posts import ABSTENTION, ANSWER, SOURCE, line

from adapters.terminal import platform as module
from adapters.terminal.platform import ResultShown, Said, SourcesPosted, TerminalPlatform, TurnClosed, Waits
from bot.messages import JobId, Standing
from bot.results import HelpShown, JobReport, JobState
from bot.types import Abstained, Answered, Stage, StatusChanged, TextDelta, TextReset

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from adapters.terminal.platform import Event, TerminalReply

MESSAGE = line("How many?")
TURN = MESSAGE.turn_id


def drained(terminal: TerminalPlatform) -> list[module.Post]:
    posts = []
    while not terminal.posts.empty():
        post = terminal.posts.get()
        assert post is not None
        posts.append(post)
    return posts


async def test_decorations_wait_for_nobody() -> None:
    terminal = TerminalPlatform("ada", "desk")
    reply = terminal.reply(MESSAGE, TURN)
    running = JobReport(id=JobId("j"), state=JobState.RUNNING)
    news: list[str] = []
    terminal.on_news = lambda: news.append("news")
    await reply.progress(Stage.SEARCHING)
    await reply.waiting(2)
    await reply.write("Thirty")
    await reply.rewrite()
    await reply.show(running)
    assert not news
    await reply.close()
    assert news
    assert [post.event for post in drained(terminal)] == [
        StatusChanged(stage=Stage.SEARCHING),
        Waits(position=2),
        TextDelta(text="Thirty"),
        TextReset(),
        ResultShown(result=running),
        TurnClosed(),
    ]
    assert await terminal.standing(MESSAGE, TURN) == Standing()


async def test_a_post_stands_once_it_is_printed() -> None:
    terminal = TerminalPlatform("ada", "desk")
    news: list[str] = []
    terminal.on_news = lambda: news.append("news")
    reply = terminal.reply(MESSAGE, TURN)
    answering = asyncio.create_task(reply.answer(ANSWER))
    await asyncio.sleep(0.02)
    assert not answering.done()
    assert news  # else a chat that waits at its prompt would let the answer wait
    assert await terminal.standing(MESSAGE, TURN) == Standing()
    (post,) = drained(terminal)
    assert post.event == Answered(answer=ANSWER)
    await asyncio.to_thread(post.printed)
    await answering
    assert await terminal.standing(MESSAGE, TURN) == Standing(answer=True)
    attaching = asyncio.create_task(reply.sources([SOURCE]))
    await asyncio.sleep(0)
    (post,) = drained(terminal)
    assert post.event == SourcesPosted(sources=(SOURCE,))
    post.printed()
    await attaching
    assert await terminal.standing(MESSAGE, TURN) == Standing(answer=True, sources=True)
    # Another process's terminal shows nothing of it.
    assert await TerminalPlatform("ada", "desk").standing(MESSAGE, TURN) == Standing()


@pytest.mark.parametrize(
    ("post_it", "event"),
    [
        (lambda reply: reply.abstain(ABSTENTION), Abstained(abstention=ABSTENTION)),
        (lambda reply: reply.say("No."), Said(text="No.")),
        (lambda reply: reply.show(HelpShown()), ResultShown(result=HelpShown())),
    ],
)
async def test_whatever_ends_a_turn_stands(
    post_it: Callable[[TerminalReply], Coroutine[None, None, None]], event: Event
) -> None:
    terminal = TerminalPlatform("ada", "desk")
    async with asyncio.TaskGroup() as group:
        group.create_task(post_it(terminal.reply(MESSAGE, TURN)))
        await asyncio.sleep(0)
        (post,) = drained(terminal)
        assert post.event == event
        post.printed()
    assert (await terminal.standing(MESSAGE, TURN)).answer


async def test_a_screen_that_prints_late_holds_the_turn_up_for_a_while_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PRINT_SECONDS", 0.01)
    terminal = TerminalPlatform("ada", "desk")
    await terminal.reply(MESSAGE, TURN).answer(ANSWER)
    # It is in line and will be printed, so that it is not to come again.
    assert await terminal.standing(MESSAGE, TURN) == Standing(answer=True)
    assert len(drained(terminal)) == 1


async def test_the_terminal_is_named_after_its_person_and_machine() -> None:
    here = TerminalPlatform.here()
    assert here.name.startswith(f"terminal:{here.user}@")
    assert await here.thread(MESSAGE, 5) == ()
