"""`footnote eval`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapters.cli.running import ANSWERED, Options
from adapters.printing import print_json, safe_line, say, tell
from bot.evaluation import EvaluationReport, evaluate

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bot.settings import Settings

_TELL_EVERY = 10
"""Progress lines a step."""


async def evaluate_sets(settings: Settings, options: Options, folders: Sequence[Path]) -> int:
    """Measure each set; one report is an object in JSON, several are a list."""
    reports = [await evaluate(folder, settings, _Progress(folder.name)) for folder in folders]
    if options.json:
        figures = [report.as_dict() for report in reports]
        print_json(figures[0] if len(figures) == 1 else figures)
    else:
        _print_table(reports)
    return ANSWERED


class _Progress:
    """Tells how far a set is, ten times a step."""

    def __init__(self, name: str) -> None:
        self._name = safe_line(name, 60)
        self._last: tuple[str, int] | None = None

    def __call__(self, step: str, done: int, total: int) -> None:
        tenth = done * _TELL_EVERY // total if total else 0
        if self._last == (step, tenth):
            return
        self._last = (step, tenth)
        tell(f"{self._name}: {step} {done:,} of {total:,}")


def _print_table(reports: Sequence[EvaluationReport]) -> None:
    figures = [report.as_dict() for report in reports]
    rows = [[name, *(_figure(one[name]) for one in figures)] for name in figures[0]]
    widths = [max(len(row[column]) for row in rows) for column in range(len(figures) + 1)]
    for name, *values in rows:
        say(
            "  ".join(
                [name.ljust(widths[0]), *(value.rjust(width) for value, width in zip(values, widths[1:], strict=True))]
            )
        )


def _figure(value: str | float | None) -> str:
    if value is None:
        return "–"
    if isinstance(value, str):
        return safe_line(value, 40)
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"
