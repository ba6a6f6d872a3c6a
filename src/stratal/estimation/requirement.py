"""Requirements on an estimate, such as `value>=.9`, with verdicts for pipelines and tests."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from stratal.errors import InputError, optional_import, suggest_names
from stratal.estimation.estimand import Estimand
from stratal.estimation.estimate import Estimate
from stratal.estimation.estimates import Estimates
from stratal.protocols import JsonDict, JsonMapping
from stratal.question.vocabulary import metric_name
from stratal.report.text import json_value
from stratal.report.verdicts import FAIL, PASS, UNDECIDED

# The parts of a requirement: a name, a sign and a number.
_PARTS = re.compile(r"\s*(.*?)\s*(>=|<=)\s*([^<>=]+?)\s*$")


@dataclass(frozen=True, slots=True)
class Requirement:
    """A lower or an upper limit of an estimate, which its whole interval must satisfy.

    Parameters
    ----------
    name : str
        Name of the estimate: `value` for a single estimate, otherwise a name such as `kappa`, `recall:cat` or
        `value@de`.
    sign : str
        `>=` or `<=`.
    limit : float
    """

    name: str
    sign: str
    limit: float

    @classmethod
    def parse(cls, text: str) -> Requirement:
        """Return the requirement that a text states.

        Raises
        ------
        InputError
            For a text of another form, and for a limit that is not a finite number.
        """
        if isinstance(text, str):
            match = _PARTS.match(text)
        else:
            match = None
        try:
            limit = float(match[3]) if match else math.nan
        except ValueError:
            # The check below has the error for all invalid texts.
            limit = math.nan
        if match is None or not math.isfinite(limit):
            allowed = "a name (value unless given), >= or <=, and a finite number: '>=.9', 'kappa>=.6'"
            action = "In a shell, put it in quotation marks."
            raise InputError("this is not a requirement", given=repr(text), allowed=allowed, action=action)
        return cls(metric_name(match[1]) or "value", match[2], limit)

    def __str__(self) -> str:
        return f"{self.name}{self.sign}{self.limit:g}"

    def check(self, bounds: tuple[float, float] | None) -> None:
        """Raise an error if the bounds of the estimate already determine the verdict.

        Raises
        ------
        InputError
            With the requirement and the bounds.
        """
        if bounds is None:
            return
        low, high = bounds
        verdict = self.verdict(bounds)
        if verdict != UNDECIDED:
            allowed = f"from {low:g}, less than {high:g}"
            if self.sign == ">=":
                allowed = f"more than {low:g}, up to {high:g}"
            raise InputError(
                f"'{self}' is {'always' if verdict == PASS else 'never'} met",
                given=f"an estimate that lies between {low:g} and {high:g}",
                allowed=allowed,
                action="Choose a limit that the estimate could meet or miss, in the outcome's units.",
            )

    def verdict(self, interval: Sequence[float | None] | None) -> str:
        """Return PASS if the whole interval satisfies it, FAIL if none of it does, otherwise UNDECIDED.

        An end that is open or unknown is None.
        """
        low, high = interval or (None, None)
        low = -math.inf if low is None else low
        high = math.inf if high is None else high
        # An upper limit is checked as a lower limit of the negative value.
        if self.sign == "<=":
            low, high = -high, -low
        limit = self.limit if self.sign == ">=" else -self.limit
        if low >= limit:
            return PASS
        if high < limit:
            return FAIL
        return UNDECIDED

    def assess(
        self,
        estimate: Estimate,
        confidence_level: float = 0.95,
        method: str = "auto",
        ends: Sequence[float | None] | None = None,
    ) -> JsonDict:
        """Return the verdict on an estimate as a plain dict, with the number of labels that would decide it.

        `ends` are the limits of another interval than that of the estimate, such as an anytime-valid one.
        """
        self.check(estimate.bounds)
        ends = ends or estimate.limits(confidence_level, method)
        verdict = self.verdict(ends)
        more_labels = None
        if verdict == UNDECIDED:
            more_labels = estimate.labels_to_exclude(self.limit, ends)
        return {
            "required": str(self),
            "share": estimate.is_share,
            "estimate": json_value(estimate.value),
            "confidence_interval": ends,
            "verdict": verdict,
            "more_labels": more_labels,
        }


def assess_requirements(
    result: Estimate | Estimates,
    requirements: Sequence[str],
    *,
    tables: Sequence[Estimates] = (),
    confidence_level: float = 0.95,
    method: str = "auto",
) -> list[JsonDict]:
    """Return the verdict on each requirement on one or several estimates, or on tables of the same labels.

    Raises
    ------
    InputError
        For an invalid requirement, an unknown name, and a requirement that is always or never met.
    """
    if isinstance(result, Estimate):
        rows_by_name = _by_name([result], "")
        methods = dict.fromkeys(rows_by_name, method)
    else:
        rows_by_name = _by_name([*result], result.kind)
        methods = dict.fromkeys(rows_by_name, result.interval)
    value_rows = rows_by_name.get("value")
    for table in tables:
        for name, named_rows in _by_name(list(table), table.kind).items():
            rows_by_name.setdefault(name, []).extend(named_rows)
            methods.setdefault(name, table.interval)
    verdicts = []
    for requirement in map(Requirement.parse, requirements):
        name = requirement.name
        if name not in rows_by_name:
            name = _estimand_text(name)
        if name not in rows_by_name and value_rows is not None and name in _names_of_value(value_rows[0]):
            name = "value"
        rows = rows_by_name.get(name, [])
        if len(rows) != 1:
            unique_names = [each for each, named_rows in rows_by_name.items() if len(named_rows) == 1]
            names_of_value = () if value_rows is None else _names_of_value(value_rows[0])
            raise _name_error(requirement, unique_names, names_of_value, is_ambiguous=bool(rows))
        # The verdict is on the interval that the row's table shows.
        verdicts.append(requirement.assess(rows[0], confidence_level, methods[name]))
    return verdicts


def _name_error(
    requirement: Requirement, names: Sequence[str], names_of_value: Sequence[str], *, is_ambiguous: bool
) -> InputError:
    """Return the error that no estimate, or several, have the name in a requirement."""
    count = "several estimates are" if is_ambiguous else "no estimate is"
    problem = f"'{requirement}': {count} called {requirement.name!r}"
    # The user may have omitted the judge or the model in the name.
    complete_names = [name for name in names if name.endswith(f":{requirement.name}")]
    if complete_names:
        allowed = ", ".join(map(repr, complete_names))
        return InputError(problem, allowed=allowed, action="Name one of these estimates.")
    return InputError(
        problem,
        allowed=suggest_names(requirement.name, [*names, *names_of_value]),
        action="Write an error of at most 0.1 as 'value>=.9'. Other names require an option: recall:CLASS "
        "with metric= (--metric), kappa with judge= (--judge), value@GROUP with by= (--by).",
    )


def _names_of_value(estimate: Estimate) -> tuple[str, ...]:
    """Return other names of the estimate itself: it is a mean, and an accuracy if labels were compared."""
    if estimate.label:
        return ()
    is_accuracy = estimate.read is not None and estimate.read.classes
    if is_accuracy:
        return ("mean", "accuracy")
    return ("mean",)


def _estimand_text(name: str) -> str:
    """Return the normal text form of an estimand, such as precision@threshold=0.5 for =.50, or the name."""
    try:
        return Estimand.parse_text(name).text
    except InputError:
        # A name that is not an estimand, such as that of a row of a table.
        return name


def assess_new_version(new: JsonMapping, requirements: Sequence[str]) -> list[JsonDict]:
    """Return the verdict on each requirement on the new answers, for which some outcomes may be unknown.

    Parameters
    ----------
    new : mapping
        `NewVersion.to_dict()`. Its interval holds for the worst and for the best outcome of the units whose
        new outcome is unknown.
    requirements : sequence of str
        Requirements on `value`.

    Raises
    ------
    InputError
        For a requirement on another quantity.
    """
    if new["bounds"] is None:
        bounds = None
    else:
        bounds = (new["bounds"][0], new["bounds"][1])
    verdicts = []
    for requirement in map(Requirement.parse, requirements):
        if requirement.name != "value":
            raise InputError(
                f"'{requirement}' cannot be decided while outcomes of new answers are unknown",
                given=f"{len(new['needs_labels']) + len(new['needs_answers'])} units without a known outcome",
                allowed="a requirement of 'value'",
                action="Label the changed answers: --new-labels FILE.",
            )
        requirement.check(bounds)
        interval = new["new"]["confidence_interval"]
        verdicts.append(
            {
                "required": str(requirement),
                "share": bool(new["old"].get("share")),
                "estimate": new["new"]["estimate"],
                "confidence_interval": interval,
                "verdict": requirement.verdict(interval),
                "more_labels": len(new["needs_labels"]) or None,
            }
        )
    return verdicts


def _by_name(rows: Sequence[Estimate], kind: str) -> dict[str, list[Estimate]]:
    """Return the estimates by each name that a requirement may use for them."""
    rows_by_name: dict[str, list[Estimate]]
    if not kind and rows:
        rows_by_name = {"value": [rows[0]]}
    else:
        rows_by_name = {}
    for row in rows:
        for name in _names_of_row(row, is_comparison=kind == "comparisons"):
            rows_by_name.setdefault(name, []).append(row)
    return rows_by_name


def _names_of_row(row: Estimate, *, is_comparison: bool) -> list[str]:
    """Return the names of an estimate, such as `verdict:kappa`, `kappa` and `recall:cat@de`."""
    separator = "-" if is_comparison else ":"
    domain = row.label.get("domain")
    suffix = "" if domain is None else f"@{domain}"
    names = []
    # The name of a single judge may be omitted: kappa is verdict:kappa.
    for omitted in ("", "judge"):
        words = [
            str(word)
            for key, word in row.label.items()
            if word is not None and key not in ("domain", omitted)
        ]
        if words or suffix:
            names.append((separator.join(words) or "value") + suffix)
    # The name of a single class too: recall is recall:cat.
    without_class = [name.partition(":")[0] for name in names[-1:]]
    return list(dict.fromkeys((*names, *without_class)))


def joint_verdict(entries: Sequence[JsonMapping]) -> str:
    """Return the verdict on all of several requirements: FAIL if one fails, PASS if all pass.

    Examples
    --------
    >>> joint_verdict([{"verdict": PASS}, {"verdict": UNDECIDED}]), joint_verdict([])
    ('UNDECIDED', 'PASS')
    """
    verdicts = {entry["verdict"] for entry in entries}
    return next((verdict for verdict in (FAIL, UNDECIDED) if verdict in verdicts), PASS)


def log_to_mlflow(
    estimate: Estimate, name: str = "accuracy", *, confidence_level: float = 0.95
) -> dict[str, float]:
    """Log an estimate in the active run of MLflow or in a new one, as metrics and as a complete JSON file.

    Parameters
    ----------
    estimate : Estimate
    name : str
        Name of the quantity; the metrics are called `accuracy`, `accuracy_low`, `accuracy_high`,
        `accuracy_standard_error` and so on, the file `accuracy.json`.
    confidence_level : float

    Returns
    -------
    dict
        The metrics, without unknown ones.

    Raises
    ------
    MissingExtraError
        If MLflow is not installed.
    InputError
        For a name with characters other than letters, digits, _, -, . and spaces, because it is also a file
        name.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.9, 0.5])
    >>> sample = stratal.designs.SimpleRandom(budget=2).draw(population, seed=7)
    >>> estimate = stratal.estimate(sample, [1, 0])
    >>> log_to_mlflow(estimate, "a/b c!")
    Traceback (most recent call last):
    stratal.errors.InputError: invalid metric name (given: 'a/b c!'...
    """
    if not name or not all(letter.isalnum() or letter in "_-. " for letter in name):
        raise InputError(
            "invalid metric name", given=repr(name), allowed="letters, digits, _, -, . and spaces"
        )
    with optional_import("mlflow-skinny", extra="mlflow"):
        import mlflow
    described = estimate.to_dict(confidence_level)
    metrics = metrics_to_log(described, name)
    mlflow.log_metrics(metrics)
    mlflow.log_dict(described, f"{name}.json")
    return metrics


def metrics_to_log(estimate: JsonMapping, name: str = "estimate") -> dict[str, float]:
    """Return the numbers of a described estimate as metrics that begin with a name, without unknown ones."""
    low, high = estimate["confidence_interval"] or (None, None)
    metrics = {
        name: estimate["estimate"],
        f"{name}_low": low,
        f"{name}_high": high,
        f"{name}_standard_error": estimate["standard_error"],
        f"{name}_labels": estimate.get("labels", estimate["n"]),
    }
    return {metric: float(value) for metric, value in metrics.items() if value is not None}
