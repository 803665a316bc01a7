from __future__ import annotations

import os
from pathlib import Path

import pytest
from pydantic import SecretStr

from bot.errors import SettingsError
from bot.settings import DEFAULT_MODEL, Settings, load_settings

OURS = ("FOOTNOTE_", "ANTHROPIC_", "QDRANT_", "REDIS_", "SLACK_", "DISCORD_")


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No variable of ours, and a folder without a .env file."""
    for name in list(os.environ):
        if name.startswith(OURS):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def test_defaults_need_nothing() -> None:
    settings = load_settings()
    assert settings.home.is_absolute()
    assert settings.home.name == "footnote"
    assert (settings.model, settings.citations, settings.qdrant_url) == (DEFAULT_MODEL, "auto", None)


def test_every_field_has_a_variable_and_a_description() -> None:
    for name, field in Settings.model_fields.items():
        assert isinstance(field.validation_alias, str), name
        assert field.validation_alias.isupper()
        assert field.description


BROKEN = [
    ("FOOTNOTE_EMBEDDING_THREADS", "many", "whole number"),
    ("FOOTNOTE_EMBEDDING_THREADS", "0", "at least 1"),
    ("FOOTNOTE_EMBEDDING_THREADS", "257", "at most 256"),
    ("QDRANT_URL", "localhost:6333", "http"),
    ("QDRANT_URL", "not an address", "http://localhost:6333"),
    ("QDRANT_COLLECTION", "a/b", "letters, digits, hyphens or underscores"),
    ("ANTHROPIC_BASE_URL", "ftp://example.com", "http:// or https://"),
    ("FOOTNOTE_CITATIONS", "sometimes", "'auto', 'native' or 'markers'"),
    ("FOOTNOTE_ANSWER_TOKENS", "63", "at least 64"),
    ("FOOTNOTE_ANSWER_TOKENS", "1.5", "whole number"),
    ("FOOTNOTE_ANSWER_SECONDS", "0", "more than 0"),
    ("FOOTNOTE_ANSWER_SECONDS", "nan", "at most 600"),
    ("FOOTNOTE_ANSWER_SECONDS", "inf", "at most 600"),
    ("FOOTNOTE_MAX_FILE_MB", "-1", "at least 1"),
    ("FOOTNOTE_MAX_PAGES", "all", "whole number"),
    ("FOOTNOTE_READ_SECONDS", "soon", "a number"),
    ("FOOTNOTE_LOG_LEVEL", "loud", "'debug', 'info', 'warning' or 'error'"),
    ("FOOTNOTE_LOG_TEXTS", "perhaps", "true or false"),
    ("REDIS_URL", "localhost:6379", "redis:// or rediss://"),
    ("REDIS_URL", "http://localhost:6379", "redis:// or rediss://"),
    ("FOOTNOTE_STATE_NAMESPACE", "a:b", "letters, digits, hyphens or underscores"),
    ("FOOTNOTE_LEASE_SECONDS", "0.5", "at least 1"),
    ("FOOTNOTE_HISTORY_DAYS", "-1", "at least 0"),
    ("FOOTNOTE_METRICS_PORT", "70000", "at most 65535"),
    ("FOOTNOTE_HOME", "~nobody-has-this-name/x", "no such user"),
]


@pytest.mark.parametrize(("variable", "value", "shape"), BROKEN)
def test_a_broken_value_is_named_with_its_shape(
    variable: str, value: str, shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(SettingsError) as raised:
        load_settings()
    line = str(raised.value).splitlines()[1]
    assert line.startswith(f"- {variable}: ")
    assert shape in line
    assert Settings.model_fields[field_of(variable)].description in line  # type: ignore[operator]  # each has one


def field_of(variable: str) -> str:
    return next(name for name, field in Settings.model_fields.items() if field.validation_alias == variable)


def test_all_broken_values_are_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOOTNOTE_MAX_PAGES", "all")
    monkeypatch.setenv("FOOTNOTE_LOG_LEVEL", "loud")
    with pytest.raises(SettingsError) as raised:
        load_settings()
    assert "FOOTNOTE_MAX_PAGES" in str(raised.value)
    assert "FOOTNOTE_LOG_LEVEL" in str(raised.value)


SECRETS = ("ANTHROPIC_API_KEY", "QDRANT_API_KEY", "SLACK_BOT_TOKEN", "DISCORD_TOKEN")


def test_secrets_show_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SECRETS:
        monkeypatch.setenv(name, "hush-hush")
    monkeypatch.setenv("QDRANT_URL", "http://ada:hush-hush@localhost:6333")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://ada:hush-hush@localhost:8000")
    monkeypatch.setenv("REDIS_URL", "redis://ada:hush-hush@localhost")
    settings = load_settings()
    assert settings.anthropic_api_key == SecretStr("hush-hush")
    assert settings.redis_url == SecretStr("redis://ada:hush-hush@localhost")
    assert "hush" not in repr(settings)
    assert "hush" not in str(settings)


def test_errors_hold_no_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QDRANT_URL", "hush-hush")
    monkeypatch.setenv("REDIS_URL", "hush-hush")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "hush-hush")
    monkeypatch.setenv("FOOTNOTE_LOG_LEVEL", "hush-hush")
    with pytest.raises(SettingsError) as raised:
        load_settings()
    assert "hush" not in str(raised.value)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__


@pytest.mark.parametrize("value", ["", "   ", "\n"])
def test_an_empty_value_is_none(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*SECRETS, "QDRANT_URL", "FOOTNOTE_MODEL", "FOOTNOTE_MAX_PAGES", "FOOTNOTE_HOME"):
        monkeypatch.setenv(name, value)
    assert load_settings().anthropic_api_key is None
    assert load_settings().model == DEFAULT_MODEL


def test_blanks_around_a_value_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", " sk-1\n")
    monkeypatch.setenv("FOOTNOTE_LOG_LEVEL", " DEBUG ")
    assert load_settings().anthropic_api_key == SecretStr("sk-1")
    assert load_settings().log_level == "debug"


def test_a_tilde_is_the_home_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("FOOTNOTE_HOME", "~/x")
    assert load_settings().home == tmp_path / "x"


def test_a_relative_folder_is_made_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FOOTNOTE_HOME", "data")
    assert load_settings().home == tmp_path / "data"


def test_variables_that_are_named_like_fields_are_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "MODEL", "CITATIONS", "LOG_LEVEL", "MAX_PAGES"):
        monkeypatch.setenv(name, "/elsewhere")
    settings = load_settings()
    assert settings.home != Path("/elsewhere")
    assert settings.model == DEFAULT_MODEL


def test_overrides_win_and_none_is_no_override(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FOOTNOTE_HOME", "/from/the/environment")
    monkeypatch.setenv("FOOTNOTE_MODEL", "from-the-environment")
    settings = load_settings(home=tmp_path, model=None)
    assert settings.home == tmp_path
    assert settings.model == "from-the-environment"


def test_a_broken_override_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="FOOTNOTE_MAX_PAGES: it has to be a whole number"):
        load_settings(max_pages="all")


def test_a_dotenv_file_is_read_and_the_environment_wins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    lines = "FOOTNOTE_MODEL=from-the-file\nFOOTNOTE_MAX_PAGES=7\nSOMETHING_ELSE=1\n# a comment\nFOOTNOTE_LOG_LEVEL=\n"
    (tmp_path / ".env").write_text(lines, encoding="utf-8")
    monkeypatch.setenv("FOOTNOTE_MODEL", "from-the-environment")
    settings = load_settings()
    assert (settings.model, settings.max_pages, settings.log_level) == ("from-the-environment", 7, "warning")


def test_a_dotenv_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"FOOTNOTE_MODEL=\xff\xfe\x00hush")
    with pytest.raises(SettingsError, match=r"\.env") as raised:
        load_settings()
    assert "hush" not in str(raised.value)


def test_settings_do_not_change() -> None:
    with pytest.raises(ValueError, match="frozen"):
        load_settings().model = "other"  # type: ignore[misc]  # the test


@pytest.mark.parametrize("variable", ["QDRANT_URL", "ANTHROPIC_BASE_URL"])
def test_an_address_that_is_none_gets_an_example_of_its_own_server(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "banana")
    with pytest.raises(SettingsError, match=f"{variable}: it has to be an address such as http://") as caught:
        load_settings()
    assert ("6333" in str(caught.value)) is (variable == "QDRANT_URL")


@pytest.mark.parametrize("scheme", ["redis", "rediss", "redis+cluster", "rediss+cluster", "unix"])
def test_every_way_to_a_redis_is_an_address(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", f"{scheme}://localhost/0")
    assert load_settings().redis_url == SecretStr(f"{scheme}://localhost/0")


@pytest.mark.parametrize(
    ("value", "ids"), [("U1", ("U1",)), (" U1 , slack:T1:U2,, ", ("U1", "slack:T1:U2")), (",", ()), ("", ())]
)
def test_lists_are_parted_by_commas(value: str, ids: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WORKSPACES", "CHANNELS", "USERS", "BOTS"):
        monkeypatch.setenv(f"FOOTNOTE_ALLOWED_{name}", value)
    settings = load_settings()
    assert settings.allowed_workspaces == settings.allowed_channels == ids
    assert settings.allowed_users == settings.allowed_bots == ids
