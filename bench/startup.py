"""Time of `footnote --help`, and of `footnote ask` on a library, each from a cold process.

The library is that of a given home, where the file in question has been ingested. The median of the runs counts. Ends
with 1 when one takes longer than it may (0.6 s and 5 s) or fails.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

from measuring.machine import describe, verdict
from measuring.processes import footnote

HELP_SECONDS = 0.6
ASK_SECONDS = 5.0
ANSWERED, ABSTAINED = 0, 3


def _median(name: str, arguments: list[str], home: Path | None, runs: int, good: set[int]) -> float | None:
    seconds = []
    for _ in range(runs):
        run = footnote(*arguments, home=home)
        if run.code not in good:
            print(f"{name} ended with {run.code}\n{run.output}{run.messages}")
            return None
        seconds.append(run.seconds)
    print(f"{name}: {', '.join(f'{value:.2f}' for value in seconds)} s")
    return statistics.median(seconds)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("home", type=Path, nargs="?", metavar="HOME", help="without it, only --help is measured")
    parser.add_argument("--question", default="What is it about?")
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    print(describe())
    figures = [("footnote --help", _median("--help", ["--help"], None, given.runs, {0}), HELP_SECONDS)]
    if given.home is not None:
        arguments = ["ask", given.question, "--json"]
        median = _median("ask", arguments, given.home, given.runs, {ANSWERED, ABSTAINED})
        figures.append(("footnote ask", median, ASK_SECONDS))
    print(describe())
    held = [median is not None and verdict(f"{name}, median", median, limit, "s") for name, median, limit in figures]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
