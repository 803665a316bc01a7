"""Follow-up questions without a language model: does a question lean on the one before, and what both say together."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bot.types import Turn

_OPENERS: Final = re.compile(
    r"^(?:and|but|so|or|also|then|what about|how about|what else|und|aber|oder|auch|was ist mit|et|mais|ou|aussi|"
    r"qu'en est-il|y|pero|o|e|ma|mas|também|anche|en|maar)\b|"
    r"^(?:では|それで|そして|じゃあ?|また|あと|那么?|还有|而且|그럼|그리고)",
    re.IGNORECASE,
)
_POINTERS: Final = re.compile(
    r"\b(?:it|its|they|them|their|theirs|he|him|his|she|her|hers|the (?:first|second|last|other|same|latter|former) ones?|"
    # "that" and "this" mostly bind or point inside the sentence; these stand for something said before.
    r"(?:this|that|these|those)(?=\s*(?:[?.!]|$|(?:is|was|are|were|mean|means|happen|happens|work|works|one|ones)\b))|"
    r"davon|dazu|damit|dort|ihn|ihm|ihnen|dessen|deren|cela|ça|celui-ci|celle-ci|eso|esto|ello|ellos|ellas|questo|quello|"
    r"isso|isto|ele|ela|daarvan|daarmee)\b|"
    r"それ|これ|あれ|その|この|そこ|彼|它|他|她|这|那|其|그것|이것",
    re.IGNORECASE,
)
# Words that ask, count or bind but name nothing: a question of only these is about what was said before.
_EMPTY: Final = frozenset(
    ["why", "when", "where", "who", "whom", "whose", "what", "which", "how", "many", "much", "often", "long", "far", "old", "big", "large", "small", "more", "less", "else", "is", "are", "was", "were", "be", "been", "do", "does", "did", "has", "have", "had", "can", "could", "will", "would", "should", "may", "might", "must", "not", "no", "yes", "a", "an", "the", "of", "in", "on", "at", "for", "to", "from", "by", "with", "about", "as", "than", "or", "and", "but", "if", "so", "please", "tell", "me", "us", "explain", "i", "we", "you", "exactly", "example", "examples", "details", "detail", "further", "again", "really", "only", "warum", "wann", "wo", "wer", "wie", "viele", "viel", "oft", "lange", "ist", "sind", "war", "genau", "bitte", "mehr", "noch", "pourquoi", "quand", "où", "qui", "quoi", "combien", "souvent", "comment", "est", "sont", "plus", "encore", "por", "qué", "cuándo", "dónde", "quién", "cuánto", "cuántos", "cómo", "es", "son", "más"]
)
_WORD: Final = re.compile(r"[^\W_]+")
_EMPTY_CJK: Final = re.compile(
    r"^(?:なぜ|どうして|いつ|どこ|だれ|誰|何|どう|どれ|いくつ|いくら|どのくらい|どれくらい|もっと|詳しく|例えば|"
    r"ですか|でしょうか|ますか|のか|か|は|が|を|に|で|の|と|も|为什么|什么时候|哪里|谁|多少|怎么|几|吗|呢|왜|언제|어디)+[?？。]*$"
)


def leans_on_context(question: str) -> bool:
    """Whether the question can hardly be understood without the one before it."""
    text = question.strip()
    if _OPENERS.search(text) or _POINTERS.search(text):
        return True
    if _EMPTY_CJK.match(text):
        return True
    words = [word.casefold() for word in _WORD.findall(text)]
    return bool(words) and all(word in _EMPTY for word in words)


def joined(turns: Sequence[Turn], question: str) -> str:
    """The question with the one that it leans on before it; unchanged when it stands alone.

    A chain of follow-ups goes back to the question that began it.
    """
    if not leans_on_context(question):
        return question
    chain = [question.strip()]
    for turn in reversed(turns):
        chain.append(turn.question.strip())
        if not leans_on_context(turn.question):
            break
    return " ".join(reversed(chain))
