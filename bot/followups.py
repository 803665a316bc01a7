"""Follow-up questions without a language model: does a question lean on the one before, and what both say together."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bot.types import Remark, Turn

_OPENERS: Final = re.compile(
    # Only before a blank or a comma: `E-mail` and `O-ring` open no follow-up. `O que …` (Portuguese) and `En qué …`
    # (Spanish) begin whole questions, so that `o` and `en` are no openers.
    r"^(?:and|but|so|or|also|then|what about|how about|what else|und|aber|oder|auch|was ist mit|et|mais|ou|aussi|"
    r"qu'en est-il|y|pero|e|ma|mas|também|anche|maar)(?=[\s,]|$)|"
    r"^(?:では|それで|そして|じゃあ?|また|あと|那么|还有|而且|그럼|그리고)",
    re.IGNORECASE,
)
# "It" stands for nothing in "how long does it take to …", "is it possible to …".
_IDLE_IT: Final = (
    r"it(?=\s+(?:possible|necessary|allowed|required|ok|okay|safe|true|better|take|takes|took|cost|costs|matter)\b"
    r"(?:\s+\w+){0,3}?\s+(?:to|that|if|for|when|whether)\s)"
)
_POINTERS: Final = re.compile(
    rf"\b(?!{_IDLE_IT})(?-i:[Ii]t)\b|"  # not `IT`, the department
    r"\b(?:its|they|them|their|theirs|he|him|his|she|her|hers|the (?:first|second|last|other|same|latter|former) ones?|"
    # "that" and "this" mostly bind or point inside the sentence; these stand for something said before.
    r"(?:this|that|these|those)(?=\s*(?:[?.!]|$|(?:is|was|are|were|mean|means|happen|happens|work|works|one|ones)\b|"
    r"(?:right|true|correct|so|possible|allowed|included|enough)\s*(?:[?.!]|$)))|"
    r"(?:das|dies|dat|dit)(?=\s*(?:[?.!]|$))|"
    r"davon|dazu|damit|dort|ihn|ihm|ihnen|cela|ça|celui-ci|celle-ci|eso|esto|ello|ellos|ellas|questo|quello|"
    r"isso|isto|ele|ela|daarvan|daarmee)\b|"
    # Not inside これまで (until now), それぞれ (each), その他 and 其他 (others), 其中, 尤其, 吉他 (guitar) …
    r"それ(?!ぞれ)|これ(?!まで|から)|あれ|その(?!他|ほか|まま)|この(?!頃|度)|そこ|彼|它|(?<![其吉の])他|她|这|"
    r"(?<![尤极与])其(?![他它她中实次余])|그것|이것",
    re.IGNORECASE,
)
# Words that ask, count or bind but name nothing: a question of only these is about what was said before.
_EMPTY: Final = frozenset(
    """
    why when where who whom whose what which how many much often long far old big large small more less else is are
    was were be been do does did has have had can could will would should may might must not no yes a an the of in
    on at for to from by with about as than or and but if so please tell me us explain i we you exactly example
    examples details detail further again really only warum wann wo wer wie viele viel oft lange ist sind war genau
    bitte mehr noch pourquoi quand où qui quoi combien souvent comment est sont plus encore por qué cuándo dónde
    quién cuánto cuántos cómo es son más
    """.split()  # noqa: SIM905 - a list of it would be a column of a hundred lines
)
_LONGEST_CHAIN: Final = 3
_LONGEST_QUESTION: Final = 400
"""Characters of an earlier question, so that it cannot crowd out the one that is asked."""
_LEAST: Final = 12
_ENOUGH: Final = 30
"""Letters: a remark of fewer than the first (agreement, thanks) tells nothing; the second are enough to lean on."""
_DENSE: Final = re.compile(r"[぀-ヿ㐀-鿿가-힣]")
_WORD: Final = re.compile(r"[^\W_]+")
_EMPTY_CJK: Final = re.compile(
    # Atomic, longer ones first: `のか` may not be tried as `の` and `か` again, which would take exponential time.
    r"^(?>なぜ|どうして|いつ|どこ|だれ|誰|何|どのくらい|どれくらい|どう|どれ|いくつ|いくら|もっと|詳しく|例えば|"
    r"ですか|でしょうか|ますか|のか|か|は|が|を|に|で|の|と|も|为什么|什么时候|哪里|谁|多少|怎么|几|吗|呢|왜|언제|어디)+[?？。]*$"
)


def leans_on_context(question: str) -> bool:
    """Whether the question can hardly be understood without the one before it."""
    text = question.lstrip(" \t\n¿¡").rstrip()
    if _OPENERS.search(text) or _POINTERS.search(text):
        return True
    if _EMPTY_CJK.match(text):
        return True
    words = [word.casefold() for word in _WORD.findall(text)]
    return bool(words) and all(word in _EMPTY for word in words)


def joined(turns: Sequence[Turn], question: str, remarks: Sequence[Remark] = ()) -> str:
    """The question with what it leans on before it; unchanged when it stands alone.

    That is the question before it, or, when nothing was asked before, the latest remarks that tell enough. A chain of
    follow-ups goes back to what began it, or as far as is sensible.
    """
    if not leans_on_context(question):
        return question
    before = [turn.question for turn in turns] or [text for text in (r.text for r in remarks) if _weight(text) > _LEAST]
    wanted = 0 if turns else _ENOUGH
    chain, told = [question.strip()], 0
    for text in reversed(before[-_LONGEST_CHAIN:]):
        chain.append(text.strip()[:_LONGEST_QUESTION])
        told += _weight(text)
        if told >= wanted and not leans_on_context(text):
            break
    return " ".join(reversed(chain))


def _weight(text: str) -> int:
    """About how much a text says: letters, those of scripts that need few of them counted as three."""
    return sum(map(str.isalpha, text)) + 2 * len(_DENSE.findall(text))
