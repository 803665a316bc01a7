"""The machine's state, printed beside every figure: one without the other says nothing."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def describe() -> str:
    """Processor, cores that this process may use, and the load average of the last minute."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    return f"machine: {_processor()}, {cores} cores, load average {load}, Python {platform.python_version()}"


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def verdict(name: str, figure: float, limit: float, unit: str) -> bool:
    """Print a figure beside the most it may be; whether it holds."""
    holds = figure <= limit
    print(f"{name}: {figure:.3g} {unit} (at most {limit:g} {unit}){'' if holds else '  FALLS SHORT'}")
    return holds
