"""A line's way through the dispatcher: handed in, waited for, and stopped when the person has enough."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from bot.messages import MessageKind, Outcome

if TYPE_CHECKING:
    from bot.dispatcher import Dispatcher, Receipt
    from bot.messages import Message

_STOP_SECONDS: Final = 10.0
"""How long a stopped turn may take to its end."""
_IN_LINE_SECONDS: Final = 0.5
"""What has not begun by then is withdrawn."""
_AGAIN_SECONDS: Final = 0.02


@dataclass(slots=True, kw_only=True)
class TurnDesk:
    """Where lines are handed in. All of it runs in the loop."""

    dispatcher: Dispatcher

    async def ask(self, message: Message) -> Outcome | None:
        """How the message's turn ended; None: the process ends before it. Cancelled, it stops the turn."""
        handing_in = asyncio.create_task(self.dispatcher.receive(message))  # noqa: TID251 - awaited below
        try:
            receipt = await asyncio.shield(handing_in)
            return await self._outcome(receipt)
        except asyncio.CancelledError:
            await self._stop(await handing_in)
            raise

    def leave(self) -> None:
        """Take nothing more; what is being answered gets its time, and no more than that."""
        self.dispatcher.close_soon()

    async def _outcome(self, receipt: Receipt) -> Outcome | None:
        outcome = await self.dispatcher.outcome(receipt)
        survives = outcome is Outcome.CLOSING and receipt.outcome is None
        return None if survives else outcome

    async def _stop(self, receipt: Receipt) -> None:
        """Stop the turn, as soon as it can be stopped; one that waits in line is withdrawn."""
        now = asyncio.get_running_loop().time
        begun = now()
        async with asyncio.TaskGroup() as group:
            ended = group.create_task(self.dispatcher.outcome(receipt))
            stopped = False
            while not ended.done() and now() < begun + _STOP_SECONDS:
                stopped = self.dispatcher.stop(receipt.turn_id) or stopped
                if not stopped and now() > begun + _IN_LINE_SECONDS:
                    await self.dispatcher.receive(replace(receipt.message, kind=MessageKind.DELETED))
                    break
                await asyncio.wait({ended}, timeout=_AGAIN_SECONDS)
            ended.cancel()
