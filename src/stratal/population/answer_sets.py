"""Answers of a population that are sets of tags: which tags there are, and which answers have one."""

from __future__ import annotations

from stratal.errors import InputError
from stratal.population.population import Population
from stratal.question.tags import NO_SETS, read_sets, tags_of


def sets_by_text(population: Population, answers: str) -> dict[str, tuple[str, ...]]:
    """Return the tags of each distinct answer, by its text; none if answers are not sets.

    Parameters
    ----------
    population : Population
    answers : str
        The group column of the answers. What is declared of the population's own answers holds for others.

    Raises
    ------
    InputError
        For an answer that is not a set of tags, if others are.
    """
    cells = list(population.levels(answers))
    texts, other = read_sets(cells, population.tags)
    if other is not None:
        raise mixed_answers(answers, cells[other], "an answer", population.tags)
    if texts is None:
        return {}
    return {cell: tags_of(text) for cell, text in zip(cells, texts, strict=True)}


def population_tags(population: Population, answers: str) -> tuple[str, ...]:
    """Return the tags of all answers, in their order."""
    return tuple(sorted({tag for tags in sets_by_text(population, answers).values() for tag in tags}))


def mixed_answers(column: str, cell: str, place: str, declared: str | None) -> InputError:
    """Return the error of a column of answers of which only some are sets of tags."""
    action = (
        'Write every answer as a list, such as ["a", "b"], or state that no answer is a set: '
        f"tags={NO_SETS!r} "
    )
    return InputError(
        f"the answers in {column!r} are sets of tags, but the answer of {place} is not",
        given=repr(str(cell)),
        allowed="lists or JSON lists" if declared is None else f"sets of tags in the format {declared!r}",
        action=f"{action}(--tags {NO_SETS}).",
    )
