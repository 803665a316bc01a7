"""What the documentation says of the code, held against the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.settings import Settings

OPERATIONS = (Path(__file__).parents[1] / "docs" / "operations.md").read_text(encoding="utf-8")
RESERVED = {"slack_bot_token", "discord_token"}


@pytest.mark.parametrize("name", sorted(set(Settings.model_fields) - RESERVED))
def test_every_setting_is_in_the_table_with_its_description(name: str) -> None:
    field = Settings.model_fields[name]
    row = next((line for line in OPERATIONS.splitlines() if line.startswith(f"| `{field.validation_alias}` |")), None)
    assert row is not None, f"{field.validation_alias} is missing"
    assert field.description is not None
    assert field.description in row


def test_the_table_names_no_setting_that_does_not_exist() -> None:
    table = OPERATIONS.partition("## Settings")[2].partition("\n## ")[0]
    named = {line.split("`")[1] for line in table.splitlines() if line.startswith("| `")}
    settable = {name: field for name, field in Settings.model_fields.items() if name not in RESERVED}
    assert named == {str(field.validation_alias) for field in settable.values()}
