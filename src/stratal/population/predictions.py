"""The quantities that proxies are declared to predict, and the scale that follows from them."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TypeVar

from stratal.errors import InputError
from stratal.population.answer_sets import population_tags
from stratal.population.population import Population
from stratal.population.proxy_info import ProxyInfo
from stratal.question.scores import ORDER, Predictions, Score, declared_scores, require_same_meaning

AnyPopulation = TypeVar("AnyPopulation", bound=Population)


def with_predictions(
    population: AnyPopulation, predicts: Predictions | None, *, scaled: bool | None = None
) -> AnyPopulation:
    """Return the population with the declared quantities that its proxies predict.

    Parameters
    ----------
    population : Population
    predicts : str or mapping of proxy to str, optional
        See `Score`. A single string requires that there is only one proxy.
    scaled : bool, optional
        Whether the proxies were declared to be on the scale of the outcome.

    Raises an `InputError` for a declaration that contradicts the values, the classes of the model's answers,
    or an earlier declaration.
    """
    scores = declared_scores(predicts, population.proxy_names)
    if not scores:
        return population
    previous_scores = {score.name: score for score in population.scores}
    infos = []
    for info in population.proxies:
        score = scores.get(info.name)
        if score is None:
            infos.append(info)
            continue
        require_same_meaning(previous_scores[info.name], score)
        _check_score(population, score, scaled)
        has_answer = bool(population.roles.answer)
        infos.append(with_declared_scale(info, score, population.label_bounds, has_answer=has_answer))
    result = copy.copy(population)
    result.proxies = tuple(infos)
    result.predicts = {**population.predicts, **{name: score.predicts for name, score in scores.items()}}
    # A distribution stores the scale of its proxy.
    result._distributions = {}
    result._level_distributions = {}
    return result


def _check_score(population: Population, score: Score, scaled: bool | None) -> None:
    """Raise an error for a declaration that contradicts `scaled`, the values or the model's answers."""
    if scaled is False and score.predicts != ORDER:
        raise InputError(
            f"{score.name!r} cannot both only order units and predict {score.predicts}, {score.meaning}",
            given=f"scaled=False (--margin) and {score.name}={score.predicts}",
            action="Leave one of them out.",
        )
    score.refuse_values_outside(*population.extent(score.name))
    _refuse_unknown_class(population, score)


def _refuse_unknown_class(population: Population, score: Score) -> None:
    """Raise an error for the probability of a class that does not occur among the model's answers."""
    answers = population.roles.answer
    if score.of_class is None or answers is None:
        return
    classes = population_tags(population, answers) or tuple(population.levels(answers))
    score.refuse_unknown_class(classes, f"the answers in {answers!r}")


def with_declared_scale(
    info: ProxyInfo, score: Score, label_bounds: tuple[float, float] | None, *, has_answer: bool
) -> ProxyInfo:
    """Return the properties of a proxy with the scale that follows from what it predicts.

    Parameters
    ----------
    info : ProxyInfo
        The properties that were inferred from the values.
    score : Score
    label_bounds : (float, float), optional
        Declared bounds of the labels.
    has_answer : bool
        Whether the population has answers of the model, with which labels are compared. Then the outcome is
        whether the answer is right, unless bounds of the labels are declared, and the probability of a class
        is on another scale.
    """
    outcome_bounds = label_bounds
    # Bounds of 0 and 1 may have been inferred from the proxy; the outcome may have others.
    if outcome_bounds is None and info.bounds != (0.0, 1.0):
        outcome_bounds = info.bounds
    if outcome_bounds is None and has_answer:
        outcome_bounds = (0.0, 1.0)
    if score.predicts == ORDER:
        return replace(info, scaled=False, second_moment=None)
    if score.bounds is None:
        return replace(info, scaled=True, bounds=outcome_bounds or info.bounds)
    is_other_outcome = has_answer and score.of_class is not None
    if is_other_outcome or outcome_bounds not in (None, score.bounds):
        return replace(info, scaled=False, bounds=outcome_bounds or score.bounds, second_moment=None)
    return replace(info, scaled=True, bounds=score.bounds)
