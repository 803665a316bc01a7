"""The `footnote` command. Only what `--help` needs is imported here; every command brings the rest itself."""

from adapters.cli.commands import main

__all__ = ["main"]
