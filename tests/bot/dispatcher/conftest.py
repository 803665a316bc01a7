"""What the tests of the dispatcher share."""

from __future__ import annotations

import pytest
from fakes.chat_platform import FakePlatform
from fakes.dispatching import ScriptedEngine


@pytest.fixture
def platform() -> FakePlatform:
    return FakePlatform()


@pytest.fixture
def engine() -> ScriptedEngine:
    return ScriptedEngine()
