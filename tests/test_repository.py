"""What ties files of the repository together and no tool checks."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

import grimp
import pytest
from markdown_it import MarkdownIt
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
LOCKS = ("requirements.lock", "requirements-dev.lock")
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
PAGES = sorted((*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")))


class Pin(NamedTuple):
    requirement: Requirement
    hashes: frozenset[str]

    @property
    def version(self) -> Version:
        (specifier,) = self.requirement.specifier
        assert specifier.operator == "=="
        return Version(specifier.version)


def read_lock(name: str) -> list[Pin]:
    text = (ROOT / name).read_text()
    lines = text.replace("\\\n", " ").splitlines()
    pins = []
    for line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        requirement, *hashes = re.split(r"\s+--hash=", line.strip())
        pins.append(Pin(Requirement(requirement), frozenset(hashes)))
    return pins


def wanted(*groups: str) -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    texts: list[str] = list(project["project"]["dependencies"])
    for group in groups:
        texts += [entry for entry in project["dependency-groups"][group] if isinstance(entry, str)]
    return [Requirement(text) for text in texts]


@pytest.mark.parametrize("name", LOCKS)
def test_every_line_of_a_lock_is_one_version_with_hashes(name: str) -> None:
    pins = read_lock(name)
    assert pins
    assert [pin for pin in pins if not pin.hashes] == []
    assert [pin for pin in pins if pin.requirement.url] == []
    assert all(pin.version for pin in pins)


@pytest.mark.parametrize(("name", "groups"), [(LOCKS[0], ("build",)), (LOCKS[1], ("build", "dev"))])
def test_a_lock_holds_what_the_project_asks_for(name: str, groups: tuple[str, ...]) -> None:
    pins = read_lock(name)
    for requirement in wanted(*groups):
        found = [pin for pin in pins if canonicalize_name(pin.requirement.name) == canonicalize_name(requirement.name)]
        assert found, f"{requirement.name} is not in {name}: run `make lock`"
        for pin in found:
            assert pin.version in requirement.specifier, f"{name} has {pin.requirement}: run `make lock`"


def test_the_locks_agree() -> None:
    development = {str(pin.requirement): pin.hashes for pin in read_lock(LOCKS[1])}
    for pin in read_lock(LOCKS[0]):
        assert development.get(str(pin.requirement)) == pin.hashes


def test_every_library_that_is_imported_is_a_dependency_of_its_own() -> None:
    packages = {"adapters", "bot", "retrieval"}
    graph = grimp.build_graph(*sorted(packages), include_external_packages=True, cache_dir=None)
    imported = {module.partition(".")[0] for module in graph.modules} - packages - sys.stdlib_module_names
    declared = {canonicalize_name(requirement.name) for requirement in wanted()}
    distributions = packages_distributions()
    assert imported
    for module in sorted(imported):
        names = {canonicalize_name(name) for name in distributions[module]}
        assert names & declared, f"{module} is imported, but pyproject.toml does not ask for any of {sorted(names)}"


def test_the_readme_begins_with_the_two_commands() -> None:
    blocks = [token.content for token in MarkdownIt().parse((ROOT / "README.md").read_text()) if token.type == "fence"]
    first = "\n".join(blocks[:2])
    assert "make run" in first
    assert "make test" in first


def test_every_command_named_in_the_documents_is_a_target() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for page in PAGES:
        for command in re.findall(r"`make ([a-z]+)", page.read_text()):
            assert command in targets, f"{page.relative_to(ROOT)} names `make {command}`"


def test_decisions_are_numbered_without_holes_and_listed() -> None:
    assert [int(path.name[:4]) for path in DECISIONS] == list(range(1, len(DECISIONS) + 1))
    index = (ROOT / "docs" / "decisions" / "README.md").read_text()
    for path in DECISIONS:
        assert f"({path.name})" in index


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for block in MarkdownIt().parse(page.read_text()):
        for token in block.children or ():
            target = str(token.attrGet("href") or token.attrGet("src") or "")
            if not target or re.match(r"[a-z]+:|#", target):
                continue
            assert (page.parent / unquote(target.partition("#")[0])).exists(), f"{page.name} links to {target}"
