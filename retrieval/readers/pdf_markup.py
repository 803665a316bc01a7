"""The parser's inline Markdown and formulas → plain text (pure)."""

from __future__ import annotations

import re
import unicodedata

from retrieval.normalising import normalise_inline

_SYMBOLS = {
    "in": "∈", "notin": "∉", "cdot": "·", "times": "×", "div": "÷", "pm": "±", "leq": "≤", "le": "≤", "geq": "≥",
    "ge": "≥", "neq": "≠", "ne": "≠", "approx": "≈", "sim": "∼", "equiv": "≡", "infty": "∞", "sum": "Σ", "prod": "Π",
    "int": "∫", "partial": "∂", "nabla": "∇", "rightarrow": "→", "to": "→", "leftarrow": "←", "Rightarrow": "⇒",
    "Leftarrow": "⇐", "leftrightarrow": "↔", "subset": "⊂", "subseteq": "⊆", "cup": "∪", "cap": "∩", "forall": "∀",
    "exists": "∃", "emptyset": "∅", "varnothing": "∅", "ldots": "...", "dots": "...", "cdots": "...", "vdots": "...",
    "prime": "'", "circ": "°", "bullet": "•", "star": "*", "ast": "*", "dagger": "†", "ddagger": "‡", "mid": "|",
    "vert": "|", "Vert": "‖", "langle": "⟨", "rangle": "⟩", "lbrace": "{", "rbrace": "}", "backslash": "\\",
    "quad": " ", "qquad": " ", "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε",
    "varepsilon": "ε", "zeta": "ζ", "eta": "η", "theta": "θ", "iota": "ι", "kappa": "κ", "lambda": "λ", "mu": "μ",
    "nu": "ν", "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "φ", "varphi": "φ", "chi": "χ",
    "psi": "ψ", "omega": "ω", "Gamma": "Γ", "Delta": "Δ", "Theta": "Θ", "Lambda": "Λ", "Xi": "Ξ", "Pi": "Π",
    "Sigma": "Σ", "Phi": "Φ", "Psi": "Ψ", "Omega": "Ω", "log": "log", "ln": "ln", "exp": "exp", "max": "max",
    "min": "min", "sin": "sin", "cos": "cos", "tan": "tan", "arg": "arg", "sqrt": "√",
}  # fmt: skip
_FORMULA = re.compile(r"(?<!\\)\$(?=\S)((?:[^$\\]|\\.)+?)(?<=\S)\$")
_FRACTION = re.compile(r"\\[dt]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}")
_SCRIPT = re.compile(r"([_^])\s*\{\s*((?:[^{}]|\{[^{}]*\})*?)\s*\}")
_COMMAND = re.compile(r"\\([A-Za-z]+)\s*")
_CUT_EMPHASIS = re.compile(r"(?<=\w)-(?:\*{1,3}|_{1,3}) +(?:\*{1,3})?(?=[^\W\d_])")
_EMPHASIS = re.compile(r"(?<!\\)\*{1,3}")
_ESCAPE = re.compile(r"\\([\\`*_{}\[\]()#+.!|<>~$&-])")
_COMBINING = {"¨": "\u0308", "´": "\u0301", "ˇ": "\u030c", "˚": "\u030a", "˜": "\u0303", "˙": "\u0307", "˘": "\u0306"}
_ACCENT = re.compile(r"(?<=[^\W\d_])([¨´ˇ˚˜˙˘]) ?([^\W\d_])(?![A-Z])")
_LEADERS = re.compile(r"[_…‥・]{4,}|(?:\. ?){6,}|-{6,}")
_CODE = re.compile(r"(?<![\\`])`([^`]+)`(?!`)")
_MARKED = re.compile(r"[*$\\`<¨´ˇ˚˜˙˘]|[_…‥・]{3}|\. ?\.|---")
"""What any of the patterns needs; most lines have none of it."""
_TAGS = re.compile(r"</?(?:sup|sub|u|b|i|br)\s*/?>", re.IGNORECASE)


def plain(text: str) -> str:
    """Emphasis, escapes and formula wrappers go; a word that emphasis kept apart at a line's end is joined."""
    if not _MARKED.search(text):
        return normalise_inline(text)
    text = _FORMULA.sub(lambda match: plain_formula(match.group(1)), text)
    text = _CUT_EMPHASIS.sub("", text)
    text = _CODE.sub(r"\1", _EMPHASIS.sub("", text))
    text = _ACCENT.sub(_accented, _TAGS.sub("", text))
    return normalise_inline(_LEADERS.sub(" ", _ESCAPE.sub(r"\1", text)))


def _accented(match: re.Match[str]) -> str:
    """A letter with the accent that the PDF has printed beside it (`Lo¨ıc`, `Tackstr¨ om`)."""
    letter = "i" if match.group(2) == "ı" else match.group(2)
    composed = unicodedata.normalize("NFC", letter + _COMBINING[match.group(1)])
    return composed if len(composed) == 1 else match.group()


def plain_formula(formula: str) -> str:
    r"""A formula as one would type it: `C\in \mathbb{R}^{H}` → `C ∈ R^H`, `T_{i}` → `T_i`."""
    formula = _FRACTION.sub(r"(\1)/(\2)", formula)

    def command(match: re.Match[str]) -> str:
        symbol = _SYMBOLS.get(match.group(1), "")
        # Relations stand between spaces; letters and dots stay as close as they were.
        return f" {symbol} " if symbol and not symbol.isalnum() and symbol not in "'...°†‡|{}⟨⟩" else symbol

    formula = _COMMAND.sub(command, formula)
    formula = re.sub(r"\\[,;:! ]", " ", formula)
    for _ in range(3):
        formula = _SCRIPT.sub(_script, formula)
    return re.sub(r" {2,}", " ", formula.replace("\\{", "{").replace("{", "").replace("}", "")).strip()


def _script(match: re.Match[str]) -> str:
    mark, inner = match.group(1), match.group(2).strip()
    if inner in {"†", "‡", "'", "*"}:
        return inner
    return f"{mark}{inner}" if len(inner.split()) < 2 and "," not in inner else f"{mark}({inner})"
