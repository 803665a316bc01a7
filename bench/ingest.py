"""Time and peak memory of `footnote ingest FILE` from a cold process, weights already prepared, library empty.

The limits are those for a paper of 16 pages (9 s, 900 MB); name others for another file, such as `--most-megabytes
1000 --most-seconds 600` for 400 pages. The best of the runs counts for time, the worst for memory. Ends with 1 when a
limit is broken or the file was not ingested.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

from measuring.machine import describe, verdict
from measuring.processes import footnote

from bot.app import library_folder, open_embedder
from bot.settings import load_settings


async def _prepare(home: Path) -> None:
    async with AsyncExitStack() as stack:
        await open_embedder(load_settings(home=home), stack, lambda sentence: print(sentence, file=sys.stderr))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--most-seconds", type=float, default=9.0)
    parser.add_argument("--most-megabytes", type=float, default=900.0)
    given = parser.parse_args()
    print(describe())
    with tempfile.TemporaryDirectory(prefix="footnote-bench-") as folder:
        home = Path(folder)
        asyncio.run(_prepare(home))
        runs = []
        for number in range(given.runs):
            shutil.rmtree(library_folder(load_settings(home=home)), ignore_errors=True)
            run = footnote("ingest", str(given.file), "--json", home=home, watch_memory=True)
            print(f"run {number + 1}: {run.seconds:.2f} s, peak {run.peak / 1e6:.0f} MB, exit code {run.code}")
            if run.code != 0:
                print(run.output + run.messages)
                return 1
            runs.append(run)
    print(describe())
    quick = verdict("ingesting, best run", min(run.seconds for run in runs), given.most_seconds, "s")
    small = verdict("peak memory, worst run", max(run.peak for run in runs) / 1e6, given.most_megabytes, "MB")
    return 0 if quick and small else 1


if __name__ == "__main__":
    sys.exit(main())
