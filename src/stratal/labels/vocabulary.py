"""Words that annotators write in place of numbers: Pass and Fail, yes and no, C and I, A, B and tie."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stratal.errors import LabelError, same_name

_PAIRS = (
    "pass passed p / fail failed f",
    "yes y / no n",
    "true t / false f",
    "correct / incorrect",
    "right / wrong",
    "good / bad",
    "accept accepted / reject rejected",
    "valid / invalid",
)

_THREES: tuple[Mapping[str, float], ...] = (
    {"c": 1.0, "p": 0.5, "i": 0.0, "n": 0.0},  # Inspect's grades: correct, partial, incorrect, no answer
    {"correct": 1.0, "partial": 0.5, "incorrect": 0.0, "no answer": 0.0},
    {"win": 1.0, "won": 1.0, "w": 1.0, "tie": 0.5, "tied": 0.5, "draw": 0.5, "t": 0.5}
    | {"loss": 0.0, "lose": 0.0, "lost": 0.0, "l": 0.0},
    {"a": 1.0, "tie": 0.5, "b": 0.0},
    {"model_a": 1.0, "tie": 0.5, "tie (bothbad)": 0.5, "both_bad": 0.5, "model_b": 0.0},
)


def _pair(words: str) -> dict[str, float]:
    """Return the words before the stroke as 1, those after it as 0."""
    ones, zeros = words.split("/")
    return dict.fromkeys(ones.split(), 1.0) | dict.fromkeys(zeros.split(), 0.0)


VOCABULARIES = (*map(_pair, _PAIRS), *_THREES)
"""What is understood; every word of a column must be in one of them."""

_SHOWN = 10
_HOW = "Say what counts: positive='…' (--positive VALUE), or mapping={…} (--map Pass=1,Fail=0,Partial=0.5)."


def meanings(words: Iterable[str]) -> dict[str, float] | None:
    """Return the number that each word stands for, None where no vocabulary holds them all.

    Parameters
    ----------
    words : iterable of str
        As written; case and spaces around do not matter.

    Raises
    ------
    LabelError
        If several vocabularies hold them all and say different things, as of a lone `P` or `T`.

    Examples
    --------
    >>> meanings(["Pass", "FAIL"]), meanings(["cat", "dog"])
    ({'Pass': 1.0, 'FAIL': 0.0}, None)
    """
    given = list(dict.fromkeys(words))
    plain = [word.strip().casefold() for word in given]
    found = [[known[word] for word in plain] for known in VOCABULARIES if all(w in known for w in plain)]
    if not given or not found:
        return None
    if any(other != found[0] for other in found):
        raise LabelError(
            f"labels: {', '.join(map(repr, given))} may stand for several things",
            allowed="words that mean one thing together",
            action=_HOW,
        )
    return dict(zip(given, found[0], strict=True))


def spoken(numbers: Mapping[str, float | None]) -> str:
    """Return what words count as, in words.

    Examples
    --------
    >>> spoken({"Pass": 1.0, "ok": 1.0, "Fail": 0.0, "?": None})
    "'Pass' and 'ok' count as 1, 'Fail' counts as 0, '?' counts as no label"
    """
    by_number: dict[float | None, list[str]] = {}
    for word, number in numbers.items():
        by_number.setdefault(number, []).append(repr(word))
    parts = []
    for number in sorted(by_number, key=lambda number: (number is None, -(number or 0.0))):
        words = by_number[number]
        listed = f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else words[0]
        value = "no label" if number is None else f"{number:g}"
        parts.append(f"{listed} count{'' if len(words) > 1 else 's'} as {value}")
    return ", ".join(parts)


def never_given(positive: str, words: Iterable[str]) -> str:
    """Return what to say of a label that is to count as 1 and that nobody gave.

    Raises
    ------
    LabelError
        Where it cannot be meant: the labels are numbers and it is none, or the other way round, or they are
        opposites, such as pass and fail.

    Examples
    --------
    >>> never_given("excellent", ["good", "poor"])
    "no label is 'excellent', so that all count as 0; there are 'good', 'poor'"
    >>> never_given("Pass", ["0", "1"])
    Traceback (most recent call last):
    stratal.errors.LabelError: no label is 'Pass' (given: '0', '1'). Name the label that counts as 1...
    """
    given = list(words)
    there = ", ".join(map(repr, given[:_SHOWN])) + (" …" if len(given) > _SHOWN else "")
    plain = [word.strip().casefold() for word in given]
    paired = any({known.get(word) for word in plain} == {0.0, 1.0} for known in map(_pair, _PAIRS))
    numbers = {_is_number(word) for word in given}
    if numbers == {not _is_number(positive)} or paired:
        raise LabelError(
            f"no label is {positive!r}",
            given=there,
            action="Name the label that counts as 1 as it is written in the file; "
            "0 and 1, yes and no, pass and fail need no name.",
        )
    return f"no label is {positive!r}, so that all count as 0; there are {there}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def declared_meanings(
    words: Iterable[str], positive: str | None, mapping: Mapping[str, float | None] | None
) -> dict[str, float | None]:
    """Return the number that each word stands for as the user said, None for no label.

    Parameters
    ----------
    words : iterable of str
    positive : str, optional
        The word that counts as 1, and every other as 0.
    mapping : mapping of str to float or None, optional
        What each word counts as. Case does not matter where a word is unique without it.

    Raises
    ------
    LabelError
        If both are given, and for a word that the mapping leaves out.

    Examples
    --------
    >>> declared_meanings(["Good", "Bad"], "good", None)
    {'Good': 1.0, 'Bad': 0.0}
    >>> declared_meanings(["Good", "Fair"], None, {"good": 1.0, "fair": 0.5})
    {'Good': 1.0, 'Fair': 0.5}
    """
    given = list(dict.fromkeys(words))
    if positive is not None and mapping is not None:
        raise LabelError("positive and mapping say the same", action="Give one of them.")
    if mapping is None:
        chosen = same_name(positive or "", given)
        return {word: float(word == chosen) for word in given}
    left_out = [word for word in given if same_name(word, mapping) is None]
    if left_out:
        raise LabelError(
            f"labels: the mapping leaves out {', '.join(map(repr, left_out[:5]))}",
            given=", ".join(mapping),
            action="Say what they count as; nothing after the equals sign is no label (--map Unsure=).",
        )
    return {word: mapping[same_name(word, mapping) or word] for word in given}
