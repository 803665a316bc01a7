"""One conversation turn on any platform, or one command: from the event to the reply and its single outcome."""

from bot.dispatcher.dispatcher import Dispatcher, DispatcherLimits, Receipt

__all__ = ["Dispatcher", "DispatcherLimits", "Receipt"]
