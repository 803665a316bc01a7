from __future__ import annotations

import pytest

from bot.phrases import phrase
from bot.smalltalk import SmallTalk, small_talk


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("hello", SmallTalk.GREETING),
        ("Hello!!", SmallTalk.GREETING),
        ("hi there 👋", SmallTalk.GREETING),
        ("Hey Footnote", SmallTalk.GREETING),
        ("good morning everyone", SmallTalk.GREETING),
        ("How are you?", SmallTalk.GREETING),
        ("What's up?", SmallTalk.GREETING),
        ("What’s up?", SmallTalk.GREETING),
        ("こんにちは！", SmallTalk.GREETING),
        ("Thanks a lot.", SmallTalk.THANKS),
        ("thank you so much", SmallTalk.THANKS),
        ("ok", SmallTalk.THANKS),
        ("Danke schön!", SmallTalk.THANKS),
        ("ありがとうございます。", SmallTalk.THANKS),
        ("bye", SmallTalk.GOODBYE),
        ("who are you?", SmallTalk.HELP),
        ("ｈｅｌｐ", SmallTalk.HELP),
        ("使い方", SmallTalk.HELP),
    ],
)
def test_small_talk_is_recognised(text: str, kind: SmallTalk) -> None:
    assert small_talk(text) is kind


@pytest.mark.parametrize(
    "text",
    [
        "",
        "?",
        "👍",
        "Hello, what is the refund period?",
        "Thanks, and how often?",
        "help me with the VPN",
        "Who are you selling to?",
        "What is a greeting card?",
        "thanks to whom did the project succeed?",
        "hello " * 100,
        "ありがとうは英語で何ですか",
    ],
)
def test_what_may_be_a_question_is_none(text: str) -> None:
    assert small_talk(text) is None


def test_every_kind_has_its_phrase() -> None:
    for kind in SmallTalk:
        assert phrase(kind, "en")
