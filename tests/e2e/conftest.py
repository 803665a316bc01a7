"""Libraries for the real command, with prepared weights that all tests share."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from making_documents import simple_pdf
from running_footnote import Office, footnote

if TYPE_CHECKING:
    from pathlib import Path

TRAVEL = """\
# Travel policy

## Approval

Business trips are approved by the head of the department. The form for a business trip is called T-17.

## Expenses

Receipts are handed in within 30 days after the trip. Taxi rides are paid only when no train runs.
"""
BACKUP = "The nightly backup of the mail server starts at two o'clock and is kept for ninety days on tape."
GARDEN = "The roses in the garden behind the office are watered every Tuesday by the gardener."


@pytest.fixture(scope="session")
def office(tmp_path_factory: pytest.TempPathFactory) -> Office:
    home, files = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("files")
    (files / "travel.md").write_text(TRAVEL, encoding="utf-8")
    (files / "handbook.pdf").write_bytes(simple_pdf(GARDEN, BACKUP))
    (files / "empty.md").write_bytes(b"")
    return Office(home, files, footnote("ingest", files, "--json", home=home))


@pytest.fixture
def home(office: Office, tmp_path: Path) -> Path:
    """An empty home that has the prepared weights."""
    fresh = tmp_path / "home"
    fresh.mkdir()
    (fresh / "models").symlink_to(office.home / "models")
    return fresh


@pytest.fixture
def own_office(office: Office, home: Path) -> Path:
    """A copy of the office's home, to be changed."""
    shutil.copytree(office.home / "library", home / "library")
    return home
