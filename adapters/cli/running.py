"""How every command runs: settings and log first, then the work; each way to fail has its sentence and exit code."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import typer

from adapters.printing import print_json, safe, tell

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path
    from typing import NoReturn

    from bot.settings import Settings

ANSWERED: Final = 0
FAILED: Final = 1
USAGE: Final = 2
ABSTAINED: Final = 3
INTERRUPTED: Final = 130


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What every command takes."""

    home: Path | None
    json: bool = False


class CommandError(Exception):
    """The command ends with a sentence for the user and this exit code."""

    def __init__(self, message: str, code: int = FAILED) -> None:
        super().__init__(message)
        self.code = code


def run(options: Options, work: Callable[[Settings], Coroutine[Any, Any, int]]) -> NoReturn:
    """Run a command's work in an event loop and leave with its exit code."""
    import asyncio  # noqa: PLC0415 - late, as the settings are

    run_plain(options, lambda settings: asyncio.run(work(settings)))


def run_plain(options: Options, work: Callable[[Settings], int]) -> NoReturn:
    """The same for work that has no event loop or brings its own."""
    # Late: pydantic takes longer than `--help` may.
    from bot.errors import BotError, SettingsError  # noqa: PLC0415 - as above
    from bot.home import LOG_FILE, require_home  # noqa: PLC0415 - as above
    from bot.settings import load_settings  # noqa: PLC0415 - as above
    from bot.telemetry import configure_logging, log_crash, log_failure, new_error_id  # noqa: PLC0415 - as above
    from retrieval.errors import ModelChoiceError, RetrievalError  # noqa: PLC0415 - as above

    try:
        settings = load_settings(home=options.home)
        configure_logging(settings.log_level, texts=settings.log_texts, file=settings.home / LOG_FILE)
        require_home(settings)
        code = work(settings)
        sys.stdout.flush()
    except KeyboardInterrupt:
        complain(options, "Stopped. What was finished before stays; nothing is left half done.")
        code = INTERRUPTED
    except BrokenPipeError:
        # Whoever read us has enough (`| head`). Python would complain when it flushes at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = FAILED
    except CommandError as error:
        complain(options, str(error))
        code = error.code
    except (SettingsError, ModelChoiceError) as error:
        complain(options, str(error))
        code = USAGE
    except (BotError, RetrievalError) as error:
        log_failure(error)
        complain(options, str(error))
        code = FAILED
    except typer.Exit:
        raise
    except Exception as error:  # noqa: BLE001 - the last line of defence: nobody sees a stack trace
        error_id = new_error_id()
        log_crash(error, error_id)
        sentence = f"Something went wrong on our side (error {error_id}). Try again; the log tells more under that id."
        complain(options, sentence, error_id)
        code = FAILED
    raise typer.Exit(code)


def complain(options: Options, sentence: str, error_id: str | None = None) -> None:
    """Tell an error: on standard error, or with `--json` as the one document on standard output."""
    if options.json:
        print_json({"error": sentence, "error_id": error_id})
    else:
        tell(safe(sentence))
