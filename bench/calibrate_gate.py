"""Fit the evidence gate: the constants of `retrieval/evidence.py`, from questions asked of right and of wrong corpora.

Every set's corpus is indexed as `footnote eval` does it, and every set's questions are asked of it. Answerable are a
set's answerable questions on its own corpus. Unanswerable are its unanswerable ones, unless they are near misses
(`--near-miss`: right topic, fact absent; no feature of a passage tells these), and all questions on other corpora. Each
pair of corpus and questions counts the same within its class, both classes count the same, and the model is a logistic
regression with a light ridge, fitted by Newton's method.

Prints the constants, then for every pair the share that the gate stops at several thresholds, then the same for a model
that has not seen the set. Ends with 1 when, at the threshold in use, more than 5 % of a set's answerable questions are
stopped or less than 90 % of its unanswerable ones that are not near misses.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from contextlib import AsyncExitStack
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from measuring.machine import describe

from bot.app import open_embedder
from bot.evaluation import index
from bot.question_sets import QuestionSet, load_question_set
from bot.settings import load_settings
from retrieval.evidence import THRESHOLD, Features
from retrieval.types import PUBLIC, Query

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from bot.settings import Settings

NAMES = tuple(field.name for field in fields(Features))
RIDGE = 1e-3
STEPS = 60
WRONG_AT_MOST = 0.05
RIGHT_AT_LEAST = 0.90


@dataclass(frozen=True)
class Pair:
    """One set's questions on one corpus: a row of features for each question, and whether it has an answer there."""

    corpus: str
    questions: str
    features: NDArray[np.float64]
    answerable: NDArray[np.bool_]

    @property
    def own(self) -> bool:
        """Whether the questions were written for this corpus."""
        return self.corpus == self.questions


@dataclass(frozen=True)
class Model:
    """`bias + features @ weights`, in the features' own units."""

    weights: NDArray[np.float64]
    bias: float

    def stopped(self, features: NDArray[np.float64], threshold: float) -> float:
        """Share of the questions that the gate stops."""
        return float((1 / (1 + np.exp(-(features @ self.weights + self.bias))) < threshold).mean())


def fit(rows: NDArray[np.float64], labels: NDArray[np.float64], counts: NDArray[np.float64]) -> Model:
    """Weighted logistic regression on standardised features, by Newton's method."""
    mean, spread = rows.mean(0), rows.std(0) + 1e-9
    design = np.c_[(rows - mean) / spread, np.ones(len(rows))]
    ridge = RIDGE * np.r_[np.ones(rows.shape[1]), 0.0]
    solution = np.zeros(design.shape[1])
    for _ in range(STEPS):
        likely = 1 / (1 + np.exp(-design @ solution))
        slope = design.T @ (counts * (likely - labels)) + ridge * solution
        curve = (
            (design * (counts * likely * (1 - likely))[:, None]).T @ design + np.diag(ridge) + 1e-9 * np.eye(len(ridge))
        )
        solution -= np.linalg.solve(curve, slope)
    weights = solution[:-1] / spread
    return Model(weights=weights, bias=float(solution[-1] - weights @ mean))


def fit_pairs(pairs: Iterable[Pair], near_miss: Sequence[str]) -> Model:
    """Fit on these pairs; each counts the same within its class, the classes count the same."""
    classes: dict[float, list[NDArray[np.float64]]] = {1.0: [], 0.0: []}
    for pair in pairs:
        if pair.own:
            classes[1.0].append(pair.features[pair.answerable])
        if not pair.own or pair.questions not in near_miss:
            classes[0.0].append(pair.features[~pair.answerable])
    groups = [(label, group) for label, some in classes.items() for group in some if len(group)]
    sizes = {label: sum(1 for other, _ in groups if other == label) for label in classes}
    return fit(
        np.concatenate([group for _, group in groups]),
        np.concatenate([np.full(len(group), label) for label, group in groups]),
        np.concatenate([np.full(len(group), 1 / len(group) / sizes[label]) for label, group in groups]),
    )


async def gather(sets: Sequence[QuestionSet], settings: Settings, cache: Path | None) -> list[Pair]:
    """Features of every set's questions on every corpus, from the cache where it has them."""
    pairs = []
    async with AsyncExitStack() as stack:
        embedder = None
        for corpus in sets:
            missing = [other for other in sets if not _cached(cache, corpus, other).is_file()] if cache else list(sets)
            if missing:
                embedder = embedder or await open_embedder(settings, stack, _say)
                async with index(corpus, settings, embedder, _progress(corpus.name)) as library:
                    for other in missing:
                        rows = []
                        for question in other.questions:
                            result = await library.searcher.search(Query(text=question.text, audience=PUBLIC))
                            rows.append(astuple(result.evidence.features))
                        pair = Pair(corpus.name, other.name, np.array(rows), _labels(corpus, other))
                        pairs.append(pair)
                        if cache:
                            _cached(cache, corpus, other).write_text(json.dumps(rows))
            for other in sets:
                if other not in missing and cache:
                    rows = json.loads(_cached(cache, corpus, other).read_text())
                    pairs.append(Pair(corpus.name, other.name, np.array(rows), _labels(corpus, other)))
    return pairs


def _labels(corpus: QuestionSet, other: QuestionSet) -> NDArray[np.bool_]:
    return np.array([corpus.name == other.name and question.answerable for question in other.questions])


def _cached(cache: Path, corpus: QuestionSet, other: QuestionSet) -> Path:
    return cache / f"{corpus.name}--{other.name}--{'-'.join(NAMES)}.json"


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr)


def _progress(name: str) -> Callable[[str, int, int], None]:
    def report(step: str, done: int, total: int) -> None:
        if done == total:
            _say(f"{name}: {step}, {done} entries done")

    return report


def print_table(
    title: str, models: dict[str, Model], pairs: Sequence[Pair], near_miss: Sequence[str], at: list[float]
) -> None:
    """For each pair the share that is stopped; `models` by corpus."""
    print(f"\n{title}\n{'corpus':24} {'questions':40}" + "".join(f"{threshold:>8}" for threshold in at))
    for pair in sorted(pairs, key=lambda pair: (pair.corpus, not pair.own, pair.questions)):
        model = models[pair.corpus]
        for wanted in (True, False):
            rows = pair.features[pair.answerable == wanted]
            if not len(rows):
                continue
            kind = (
                "answerable: wrong refusals"
                if wanted
                else "near misses"
                if pair.questions in near_miss
                else "unanswerable"
            )
            name = kind if pair.own else f"{pair.questions}'s"
            print(f"{pair.corpus:24} {name:40}" + "".join(f"{model.stopped(rows, threshold):8.1%}" for threshold in at))


def holds(model: Model, pairs: Sequence[Pair], near_miss: Sequence[str]) -> bool:
    """Whether the figures that must be reached are reached on every set's own corpus."""
    good = True
    for pair in pairs:
        if not pair.own:
            continue
        yes, no = pair.features[pair.answerable], pair.features[~pair.answerable]
        if len(yes) and model.stopped(yes, THRESHOLD) > WRONG_AT_MOST:
            print(f"FALLS SHORT: {pair.corpus}, wrong refusals over {WRONG_AT_MOST:.0%}")
            good = False
        if len(no) and pair.questions not in near_miss and model.stopped(no, THRESHOLD) < RIGHT_AT_LEAST:
            print(f"FALLS SHORT: {pair.corpus}, right abstentions under {RIGHT_AT_LEAST:.0%}")
            good = False
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+", type=Path, metavar="SET_DIR")
    parser.add_argument("--near-miss", action="append", default=[], metavar="SET", help="a set's name; may be repeated")
    parser.add_argument("--cache", type=Path, help="folder for features; empty it when search or chunking change")
    parser.add_argument("--home", type=Path, help="Footnote's home, for the prepared model")
    parser.add_argument("--thresholds", type=float, nargs="+", default=[0.2, THRESHOLD, 0.5, 0.65, 0.8])
    given = parser.parse_args()
    print(describe())
    if given.cache:
        given.cache.mkdir(parents=True, exist_ok=True)
    sets = [load_question_set(folder) for folder in given.sets]
    pairs = asyncio.run(gather(sets, load_settings(home=given.home), given.cache))
    model = fit_pairs(pairs, given.near_miss)
    weights = ", ".join(f"{name}={weight:.2f}" for name, weight in zip(NAMES, model.weights, strict=True))
    print(f"\nsame_language=Weights(bias={model.bias:.2f}, {weights})")
    names = [each.name for each in sets]
    print_table("Share stopped, by threshold", dict.fromkeys(names, model), pairs, given.near_miss, given.thresholds)
    if len(sets) > 2:
        unseen = {
            name: fit_pairs([pair for pair in pairs if name not in (pair.corpus, pair.questions)], given.near_miss)
            for name in names
        }
        title = "The same on a corpus that the model has not seen, nor its questions"
        print_table(title, unseen, pairs, given.near_miss, given.thresholds)
    return 0 if holds(model, pairs, given.near_miss) else 1


if __name__ == "__main__":
    sys.exit(main())
