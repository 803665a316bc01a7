"""What `footnote ask` keeps of a question."""

from __future__ import annotations

from adapters.cli.ask import _asked, _came_of
from bot.messages import Outcome
from bot.types import ErrorId, Failed


def test_a_failed_question_is_kept_with_what_was_said() -> None:
    entry = _came_of(
        _asked("Why?", ["hr"]), Failed(text="Something broke (error 1234abcd).", error_id=ErrorId("1234abcd"))
    )
    assert (entry.question, entry.outcome, entry.reply) == ("Why?", Outcome.FAILED, "Something broke (error 1234abcd).")
    assert entry.audience.scopes == {"everyone", "hr"}
    assert entry.author.id.startswith("terminal:")


def test_asking_the_same_twice_makes_two_entries() -> None:
    assert _asked("Why?", []).id != _asked("Why?", []).id
