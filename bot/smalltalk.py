"""Messages that ask nothing of the documents: greetings, thanks, good-byes, questions about the bot itself."""

from __future__ import annotations

import re
import unicodedata
from enum import StrEnum
from typing import Final


class SmallTalk(StrEnum):
    """What a message without a question is; also the name of the phrase that answers it."""

    GREETING = "greeting"
    THANKS = "thanks"
    GOODBYE = "goodbye"
    HELP = "help"


_PHRASES: Final = {
    SmallTalk.GREETING: (
        "hello|hi|hey|hiya|yo|howdy|greetings|hello there|hi there|hey there|good morning|good afternoon|good evening|"
        "morning|how are you|how are you doing|whats up|sup|test|testing|ping|"
        "hallo|guten tag|guten morgen|guten abend|servus|moin|grüezi|bonjour|bonsoir|salut|coucou|"
        "hola|buenos días|buenas|buenas tardes|ciao|buongiorno|buonasera|salve|olá|oi|bom dia|boa tarde|goedemorgen|hoi|"
        "こんにちは|こんばんは|おはよう|おはようございます|やあ|どうも|はじめまして|你好|您好|嗨|早上好|大家好|안녕|안녕하세요"
    ),
    SmallTalk.THANKS: (
        "thanks|thank you|thx|ty|cheers|thanks a lot|thank you very much|thank you so much|many thanks|much appreciated|"
        "great thanks|ok thanks|okay thanks|perfect thanks|nice|great|cool|perfect|awesome|ok|okay|got it|good bot|"
        "danke|danke schön|vielen dank|merci|merci beaucoup|gracias|muchas gracias|grazie|grazie mille|obrigado|obrigada|"
        "bedankt|ありがとう|ありがとうございます|ありがとうございました|どうもありがとう|助かりました|了解|了解です|"
        "谢谢|謝謝|多谢|感谢|감사합니다|고마워|고맙습니다"
    ),
    SmallTalk.GOODBYE: (
        "bye|goodbye|good bye|bye bye|see you|see ya|good night|have a nice day|tschüss|auf wiedersehen|au revoir|"
        "adiós|hasta luego|arrivederci|tchau|adeus|doei|さようなら|またね|おやすみ|おやすみなさい|再见|再見|拜拜|안녕히 계세요"
    ),
    SmallTalk.HELP: (
        "help|help me|who are you|what are you|what can you do|what do you do|how do you work|are you a bot|"
        "hilfe|wer bist du|was kannst du|aide|qui es tu|que peux tu faire|ayuda|quién eres|qué puedes hacer|aiuto|chi sei|"
        "ajuda|quem é você|ヘルプ|助けて|あなたは誰|あなたは誰ですか|何ができますか|何ができる|使い方|帮助|你是谁|你能做什么|도움말|누구세요"
    ),
}
_KINDS: Final = {phrase: kind for kind, phrases in _PHRASES.items() for phrase in phrases.split("|")}
_NAMED: Final = re.compile(r"\s+(?:footnote|bot|all|everyone|team|folks|there|so much|again)$")
_LONGEST: Final = 60


def small_talk(text: str) -> SmallTalk | None:
    """What kind of small talk the whole message is, or None when it may be a question for the documents."""
    if len(text) > _LONGEST:
        return None
    folded = unicodedata.normalize("NFKC", text).casefold().replace("'", "").replace("’", "")
    # Emoji, punctuation and symbols say nothing here.
    plain = "".join(char if char.isalnum() or unicodedata.category(char) == "Mn" else " " for char in folded)
    words = " ".join(plain.split())
    return _KINDS.get(words) or _KINDS.get(_NAMED.sub("", words))
