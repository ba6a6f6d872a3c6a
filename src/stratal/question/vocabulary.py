"""Words that count as numbers, such as pass and fail, or win, tie and loss."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stratal.errors import LabelError

# Values of the column `status` of a file of labels.
SUBMITTED = "submitted"
SKIPPED = "skipped"

# Pairs of opposites: words before the slash count as 1, words after it as 0.
_BINARY_WORDS = (
    "pass passed p / fail failed f",
    "yes y / no n",
    "true t / false f",
    "correct right / incorrect wrong",
    "good / bad",
    "accept accepted / reject rejected",
    "valid / invalid",
)

# Further words that mean success. Their opposites vary, so that they are no vocabulary.
_SUCCESS_WORDS = (
    "ok okay success successful succeeded safe positive helpful useful relevant supported grounded faithful "
    "factual consistent compliant clean complete resolved solved approve approved like liked up thumbs_up "
    "match 👍 ✓ ✔ ✅ ja si sí oui"
)
# Beginnings of words that mean the opposite of the rest, such as irrelevant and `not ok`.
_NEGATIONS = ("un", "in", "ir", "im", "dis", "non", "not", "no")

# Graded outcomes and preferences between two models; a tie or a partly correct answer counts as 1/2.
_GRADED_WORDS: tuple[Mapping[str, float], ...] = (
    {"c": 1.0, "p": 0.5, "i": 0.0, "n": 0.0},  # Inspect's grades: correct, partial, incorrect, no answer
    {"correct": 1.0, "partial": 0.5, "incorrect": 0.0, "no answer": 0.0},
    {"win": 1.0, "won": 1.0, "w": 1.0, "tie": 0.5, "tied": 0.5, "draw": 0.5, "t": 0.5}
    | {"loss": 0.0, "lose": 0.0, "lost": 0.0, "l": 0.0},
    {"a": 1.0, "tie": 0.5, "b": 0.0},
    {"model_a": 1.0, "tie": 0.5, "tie (bothbad)": 0.5, "both_bad": 0.5, "model_b": 0.0},
)


def _binary_vocabulary(pair: str) -> dict[str, float]:
    """Return the words before the slash with the number 1 and the words after it with 0."""
    ones, zeros = pair.split("/")
    return dict.fromkeys(ones.split(), 1.0) | dict.fromkeys(zeros.split(), 0.0)


# Each vocabulary gives words their numbers. A column is numeric if one vocabulary contains all of its words.
BINARY_VOCABULARIES = tuple(map(_binary_vocabulary, _BINARY_WORDS))
VOCABULARIES = (*BINARY_VOCABULARIES, *_GRADED_WORDS)

# `action` of errors about labels that do not count as numbers.
MAPPING_HELP = (
    "Declare what labels count as: positive='…' (--positive VALUE), or "
    "mapping={'Pass': 1, 'Fail': 0, 'unsure': None} (--map Pass=1,Fail=0,unsure=)."
)


# Names of metrics in other fields, and the name of the same metric here.
METRIC_SYNONYMS = {
    "sensitivity": "recall",
    "true_positive_rate": "recall",
    "tpr": "recall",
    "hit_rate": "recall",
    "true_negative_rate": "specificity",
    "tnr": "specificity",
    "ppv": "precision",
    "positive_predictive_value": "precision",
    "npv": "negative_predictive_value",
    "fdr": "false_discovery_rate",
    "fpr": "false_positive_rate",
    "false_alarm_rate": "false_positive_rate",
    "fall_out": "false_positive_rate",
    "fnr": "false_negative_rate",
    "miss_rate": "false_negative_rate",
    "accuracy_score": "accuracy",
    "precision_score": "precision",
    "recall_score": "recall",
    "f1_score": "f1",
    "matthews_corrcoef": "mcc",
    "cohen_kappa": "kappa",
    "brier_score": "brier",
    "confusion_matrix": "confusion",
    "pass_rate": "mean",
    "r_squared": "r2",
}


# Averages of a metric over classes, with the names in scikit-learn.
AVERAGES = ("macro", "micro", "weighted")


def metric_name(text: str) -> str:
    """Return the name of a metric for a synonym, such as recall for sensitivity; other names unchanged.

    A class or an option after a colon is not changed.
    """
    name, colon, option = text.strip().partition(":")
    key = name.strip().casefold().replace(" ", "_").replace("-", "_")
    return f"{METRIC_SYNONYMS.get(key, name)}{colon}{option}"


def average_name(text: str) -> str | None:
    """Return the estimand for a name of an average over classes, such as `f1_micro`; None for other names."""
    key = text.strip().casefold().replace(" ", "_").replace("-", "_")
    if ":" in key:
        return None
    for average in AVERAGES:
        metric = key.removeprefix(f"{average}_").removesuffix(f"_{average}")
        if metric != key:
            return f"average:{metric_name(metric)},average={average}"
    return None


def success_word(words: Iterable[str]) -> str | None:
    """Return the one of two words that means success, or whose negation is the other; None if unclear.

    Examples
    --------
    >>> success_word(["irrelevant", "relevant"])
    'relevant'
    """
    pair = sorted(words)
    if len(pair) != 2:
        return None
    successes = [word for word, other in (pair, reversed(pair)) if _means_success(word, other)]
    if len(successes) == 1:
        return successes[0]
    return None


def _means_success(word: str, opposite: str) -> bool:
    """Return whether a word means success, or its opposite is its negation."""
    name = word.strip().casefold()
    other = opposite.strip().casefold()
    if any(numbers.get(name) == 1.0 for numbers in BINARY_VOCABULARIES):
        return True
    if name in _SUCCESS_WORDS.split():
        return True
    return any(
        other == f"{negation}{separator}{name}"
        for negation in _NEGATIONS
        for separator in ("", " ", "-", "_")
    )


def reverses_success(numbers: Mapping[str, float]) -> bool:
    """Return whether all known words for success count as 0 in `numbers`, and those for failure as 1.

    Examples
    --------
    >>> reverses_success({"bad": 1.0}), reverses_success({"good": 1.0}), reverses_success({"no": 1.0})
    (True, False, False)
    """
    usual_numbers: dict[str, float] = {}
    for vocabulary in BINARY_VOCABULARIES:
        # Whether `yes` and `true` mean success depends on the question to the annotators.
        if not {"yes", "true"} & vocabulary.keys():
            usual_numbers |= vocabulary
    pairs = [(number, usual_numbers.get(word.strip().casefold())) for word, number in numbers.items()]
    known_pairs = [(number, usual) for number, usual in pairs if usual is not None]
    return bool(known_pairs) and all(number == 1.0 - usual for number, usual in known_pairs)


def reversed_verdicts(numbers: Mapping[str, float]) -> dict[str, float]:
    """Return the numbers of verdicts with 0 and 1 exchanged; unchanged if there are other numbers."""
    if not {*numbers.values()} <= {0.0, 1.0}:
        return dict(numbers)
    return {verdict: 1.0 - number for verdict, number in numbers.items()}


def is_known_word(text: str) -> bool:
    """Return whether any vocabulary contains a word."""
    return any(text.casefold() in words for words in VOCABULARIES)


def numbers_by_word(words: Iterable[str]) -> dict[str, float] | None:
    """Return the number that each word means, or None if no vocabulary contains all words.

    Raises
    ------
    LabelError
        If several vocabularies contain all words with different numbers, such as `P`: pass or partial.
    """
    distinct_words = list(dict.fromkeys(words))
    normalized_words = [word.strip().casefold() for word in distinct_words]
    candidates = [
        [numbers[word] for word in normalized_words]
        for numbers in VOCABULARIES
        if numbers.keys() >= set(normalized_words)
    ]
    if not distinct_words or not candidates:
        return None
    if any(other != candidates[0] for other in candidates):
        raise LabelError(
            f"labels: ambiguous values: {', '.join(map(repr, distinct_words))}",
            allowed="words that have a single meaning when used together",
            action=MAPPING_HELP,
        )
    return dict(zip(distinct_words, candidates[0], strict=True))
