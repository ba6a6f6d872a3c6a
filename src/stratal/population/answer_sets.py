"""Answers of a population that are sets of tags."""

from __future__ import annotations

from stratal.errors import InputError
from stratal.population.population import Population
from stratal.question.tags import NO_SETS, read_sets, tags_of


def sets_by_text(population: Population, answers: str) -> dict[str, tuple[str, ...]]:
    """Return the tags of each distinct answer, by its text; empty if answers are not sets.

    Parameters
    ----------
    population : Population
    answers : str
        The group column of the answers. The declared format of tags is used for every such column.

    Raises an `InputError` for an answer that is not a set of tags, if others are.
    """
    levels = list(population.levels(answers))
    set_texts, first_invalid = read_sets(levels, population.tags)
    if first_invalid is not None:
        raise mixed_answers_error(answers, levels[first_invalid], "an answer", population.tags)
    if set_texts is None:
        return {}
    return {level: tags_of(text) for level, text in zip(levels, set_texts, strict=True)}


def population_tags(population: Population, answers: str) -> tuple[str, ...]:
    """Return all tags in the group column `answers`, sorted; empty if answers are not sets."""
    return tuple(sorted({tag for tags in sets_by_text(population, answers).values() for tag in tags}))


def mixed_answers_error(column: str, answer: str, unit: str, declared_format: str | None) -> InputError:
    """Return the error for a column of answers of which only some are sets of tags.

    `answer` is the first answer that is no set, and `unit` names its unit in the message.
    """
    if declared_format is None:
        allowed = "lists or JSON lists"
    else:
        allowed = f"sets of tags in the format {declared_format!r}"
    return InputError(
        f"the answers in {column!r} are sets of tags, but the answer of {unit} is not",
        given=repr(str(answer)),
        allowed=allowed,
        action='Write every answer as a list, such as ["a", "b"], or state that no answer is a set: '
        f"tags={NO_SETS!r} (--tags {NO_SETS}).",
    )
