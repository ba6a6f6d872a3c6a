"""`evaluate`: the estimate with the requested tables, verdicts and notes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stratal.designs import post_stratify
from stratal.designs.extending import require_same_population
from stratal.designs.external_columns import ids_of
from stratal.designs.sample import Sample
from stratal.errors import InputError, MissingColumnError, MissingExtraError, keywords_from, no_effect_error
from stratal.estimation.entry_points import compared_answers, estimate
from stratal.estimation.estimate import Estimate
from stratal.estimation.estimates import Estimates, with_tables
from stratal.estimation.estimator_comparison import PROXY, REPORTED, WEIGHTED, compare_estimators
from stratal.estimation.outcome_means import unused_proxy_reason
from stratal.evaluation.labelled_sample import LabelledSample, read_labelled_sample
from stratal.evaluation.labelled_table import LabelledTable
from stratal.evaluation.request import MISSING, WRONG, EvaluationRequest
from stratal.evaluation.requested_tables import compute_tables
from stratal.labels.accepted_types import labels_with_sample_ids
from stratal.labels.annotators import measure_agreement
from stratal.labels.joined_labels import join_labels
from stratal.labels.label_files import read_labels
from stratal.labels.labels import Labels
from stratal.planning import next_round
from stratal.planning.findings import Findings, findings, more_labels_of
from stratal.population.population import Population
from stratal.protocols import JsonDict
from stratal.question.chosen_rows import UNKNOWN
from stratal.question.roles import ColumnRoles, refuse_revealing_columns
from stratal.randomness import id_texts
from stratal.report.judges import CORRECTED, JUDGE_ONLY, LABELS_ONLY, judge_notes
from stratal.report.notes import FIRST_MODEL, LABELS_BY_ANSWER, LABELS_BY_PROXY, NOT_AT_RANDOM, Note
from stratal.report.verdicts import UNDECIDED

if TYPE_CHECKING:
    from stratal.metrics.new_version import NewVersion
    from stratal.report.text import Page

# Modules that only some requests need are imported where they are used.

# Takes a sample and column names; returns the population with these columns, None if none is needed.
PopulationReader = Callable[[Sample, Sequence[str]], Population | None]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Evaluation:
    """An estimate with the requested tables, verdicts and notes.

    Parameters
    ----------
    request : EvaluationRequest
    sample : Sample
        With the answers, verdicts and weights that the request names.
    labels : Labels, or mapping of column to Labels
        The labels used for the estimate.
    words : Labels
        The labels as the annotators wrote them.
    estimate : Estimate or Estimates
        Several if the estimand has several values.
    tables : tuple of Estimates
        Metrics, comparisons, judges, questions and groups, in this order.
    remarks : tuple of str
        Further notes for the reader.
    model : str, optional
        Name of the estimated model, if several are compared.
    verdicts : tuple of dict, optional
        Verdict on each requirement; None if no requirement is given.
    unscored : dict, optional
        Numbers of failed answers and missing scores in the log of an evaluation tool.
    new : NewVersion, optional
        Comparison of the new version's answers with the labels.
    old : Evaluation, optional
        Evaluation of the sample's own answers, if the estimate is for the new answers.
    study : Path, optional
        Folder of the study that contains the labels.
    table : LabelledTable, optional
        The table that contains the labels, with the recognised roles of its columns.
    post_stratified : Estimate, optional
        Estimate post-stratified by quantiles of the proxy, or by the model's answers, if the labelled rows of
        a table are not a random sample of it.
    """

    request: EvaluationRequest
    sample: Sample
    labels: Any
    words: Labels
    estimate: Estimate | Estimates
    tables: tuple[Estimates, ...]
    remarks: tuple[str, ...]
    model: str | None
    verdicts: tuple[JsonDict, ...] | None = None
    unscored: JsonDict | None = None
    new: NewVersion | None = None
    old: Evaluation | None = None
    study: Path | None = None
    table: LabelledTable | None = None
    post_stratified: Estimate | None = None

    @property
    def status(self) -> str | None:
        """The verdict on all requirements together: PASS, FAIL or UNDECIDED; None without requirements."""
        # Few evaluations have requirements.
        from stratal.estimation.requirement import joint_verdict

        if self.verdicts is None:
            return None
        return joint_verdict(list(self.verdicts))

    @property
    def quantity(self) -> str | None:
        """The name of the estimated quantity, such as `pass rate`; None if there are several estimates."""
        if isinstance(self.estimate, Estimates):
            return None
        column = self.model or self.request.label_column
        read = self.estimate.read
        if self.estimate.label or read is None or read.classes:
            name = self.estimate.quantity
        else:
            name = self.estimate.quantity_in_words(join_labels(self.sample, self.words).table(), column)
        if self.model is not None and column not in name:
            return f"{name} of {self.model}"
        return name

    @property
    def new_outcomes_missing(self) -> bool:
        """Whether outcomes of a new version's answers are missing, so it has no estimate."""
        return self.new is not None and self.old is None

    def to_dict(self, *, brief: bool = False) -> JsonDict:
        """Return the JSON-serializable dict that the command prints with `--json`.

        If it is `brief` and there are very many groups, only the groups that are printed have errors and
        intervals.
        """
        # Rendering is imported only when a result is shown.
        from stratal.report.text import MIN_TABLE_ROWS

        lowest = MIN_TABLE_ROWS if brief else None
        # The outcomes of the new answers are missing, so that there is no estimate to describe.
        if self.new is not None and self.old is None:
            return {"new_version": self.new.to_dict(), "requirements": list(self.verdicts or ())}
        if isinstance(self.estimate, Estimates):
            described = self._describe_estimates(self.estimate, lowest)
        else:
            described = self._describe_estimate(self.estimate, lowest)
        if self.verdicts is not None:
            described["requirements"] = list(self.verdicts)
        if self.unscored is not None:
            described["unscored"] = self.unscored
        if self.table is not None:
            described["roles"] = self._roles(self.table)
        if self.post_stratified is not None:
            by_answers = LABELS_BY_ANSWER in _note_codes(self.estimate)
            by = "the model's answers" if by_answers else "quantiles of the proxy"
            level = self.request.confidence_level
            described["post_stratified"] = {"by": by, **self.post_stratified.to_dict(level)}
        if self.new is not None:
            described["new_version"] = self.new.to_dict()
            described["notes"] = [self._note_on_new_answers(self.new), *described["notes"]]
        return described

    def _describe_estimates(self, estimates: Estimates, lowest: int | None) -> JsonDict:
        """Return several estimates and the tables as a dict; `lowest` is as for `with_tables`."""
        level = self.request.confidence_level
        described = estimates.to_dict(level)
        overall_rows = described.get(estimates.kind, [])
        described = with_tables(described, list(self.tables), level, list(self.remarks), lowest)
        if any(table.kind == estimates.kind for table in self.tables):
            # The estimands of groups are of the same kind, and follow those of all units.
            described[estimates.kind] = [*overall_rows, *described[estimates.kind]]
        return described

    def _describe_estimate(self, estimate: Estimate, lowest: int | None) -> JsonDict:
        """Return the estimate, the tables and comparisons of judges as a dict."""
        request = self.request
        level = request.confidence_level
        described = estimate.to_dict(level, request.interval) | {"quantity": self.quantity}
        described = with_tables(described, list(self.tables), level, list(self.remarks), lowest)
        options = request.estimand_options | request.interval_options
        described["more_labels"] = more_labels_of(self.sample, self.labels, estimate, **options)
        # Scores on another scale than the labels agree or disagree with none of them.
        if any(row["metric"] == "agreement" for row in described.get("judge", ())):
            # Only comparisons with judges need a review.
            from stratal.metrics.disagreement_review import count_disagreements

            described["differing"] = count_disagreements(self.sample, self.words, request.judge)
        if "judge" in described and estimate.outcomes is not None:
            described["judge_readings"] = self._judge_readings(estimate)
        return described

    def page(self, described: JsonDict | None = None, *, details: bool = False) -> Page:
        """Return the page of the result; `described` is the dict of `to_dict`, computed by default."""
        # Rendering is imported only when a result is shown.
        from stratal.report.estimates import answer_page, details_page
        from stratal.report.sections import new_answers_page

        if described is None:
            described = self.to_dict()
        if self.new_outcomes_missing:
            return new_answers_page(described, title=f"Answers in {self._new_answers_label()}")
        quantity = self.estimate.title if isinstance(self.estimate, Estimates) else ""
        if details:
            return details_page(described, quantity)
        return answer_page(described, quantity)

    def __repr__(self) -> str:
        # Rendering is imported only when a result is shown.
        from stratal.report.text import one_line

        return one_line(self, self.page().lines)

    def __str__(self) -> str:
        # Rendering is imported only when a result is shown.
        from stratal.report.text import page_text

        return page_text(self.page())

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()

    def report(
        self,
        *,
        title: str | None = None,
        question: str | None = None,
        quantity: str | None = None,
        threshold: JsonDict | None = None,
        commands: Sequence[str] = (),
        examples: int = 0,
    ) -> Findings:
        """Return the report on the stored answers; a new version gets its own section.

        Parameters
        ----------
        title, question : str, optional
            The heading, and what the annotators were asked; a study declares the question.
        quantity : str, optional
            Name of the estimate, such as `accuracy`.
        threshold : dict, optional
            The accepted set of a score: `Threshold.to_dict()`.
        commands : sequence of str
            Commands that reproduce the report.
        examples : int
            Number of units that are shown as the annotators saw them.
        """
        result = self.old or self
        request = result.request
        annotator_pairs: list[JsonDict] = []
        if result.study is not None:
            # The modules of studies, with their database, are imported only for studies.
            from stratal.study import open_study
            from stratal.study.status import pairwise_agreement

            with open_study(result.study, read_only=True) as study:
                annotator_pairs = pairwise_agreement(study)
                columns = study.form.columns
                study_question, _ = columns.get(request.value or "", next(iter(columns.values())))
            question = question or study_question.text
        if quantity is not None and result.model is not None:
            quantity = f"{quantity} of {result.model}"
        quantity = quantity or result.quantity
        return findings(
            result.sample,
            result.labels,
            estimates=result.estimate,
            tables=result.tables,
            notes=(*result._role_notes, *result.remarks),
            require=self.verdicts or (),
            # The question is the heading, if there is one.
            title=None if question else title,
            question=question,
            quantity=quantity,
            pairs=annotator_pairs,
            new=self.new,
            threshold=threshold,
            commands=commands,
            examples=examples,
            **request.interval_options,
            **request.target_option,
            **request.estimand_options,
        )

    def next_round(
        self,
        *,
        additional: int | None = None,
        half_width: Any = None,
        show: Sequence[str] = (),
        seed: int | None = None,
    ) -> Sample:
        """Return the sample with a further round, for labels that are in a table.

        If the labelled rows were chosen at random, they are the first round. If they were chosen in an
        unknown way, their labels only inform the allocation of a new sample, which does not contain these
        rows.

        Parameters
        ----------
        additional : int, optional
            Units to draw.
        half_width : float, optional
            Target half-width of the interval, instead of `additional`.
        show : sequence of str
            Columns of the table that annotators see.
        seed : int, optional
            Seed of the draw. Default: 0.

        Raises
        ------
        InputError
            If the rows were declared to be chosen at random but columns contradict this, and for clusters and
            other designs without a next round.
        """
        if self.table is None:
            raise InputError(
                "the labels are not in a table",
                action="Extend the sample: stratal.next_round(sample, labels, additional=…).",
            )
        request = self.request
        rows = self.table.rows
        recognition = self.table.recognition
        names = [request.label_column, recognition.proxy, *recognition.scores, *request.proxy]
        # Labels and scores would influence the annotators.
        revealing_columns = [rows.find(name) for name in (*names, *request.judge) if name is not None]
        shown_columns = [rows.find(name) or name for name in show]
        roles = ColumnRoles(answer=request.answer_column and rows.find(request.answer_column))
        refuse_revealing_columns(shown_columns, [*filter(None, revealing_columns)], roles)
        if self.table.selection.kind != UNKNOWN and _is_unrepresentative(self.estimate):
            raise InputError(
                "the labelled rows are not a random sample of the table, so they cannot be a first round",
                allowed="rows that were chosen at random",
                action=f"Let the labels inform a new sample: chosen={UNKNOWN!r} (--chosen {UNKNOWN}).",
            )
        level = request.confidence_level
        options: JsonDict = {"additional": additional, "half_width": half_width, "confidence_level": level}
        sample = self.sample
        if seed is not None:
            sample = replace(sample, seed=seed)
        extended_sample = next_round(sample, self.labels, **options)
        row_of_id = {text: row for row, text in enumerate(id_texts(ids_of(rows, request.id)))}
        drawn_rows = [row_of_id[text] for text in id_texts(extended_sample.ids)]
        drawn = rows.only(drawn_rows)
        columns = {name: np.array(drawn.values(name), dtype=object) for name in shown_columns}
        return replace(extended_sample, shown=columns)

    def write_disagreements(self, path: str | Path) -> int:
        """Write the items on which a judge and people disagree, for a review; return their number.

        Raises
        ------
        InputError
            If no judge was requested, or the file exists.
        """
        # Few evaluations write a review.
        from stratal.metrics.disagreement_review import write_disagreements

        request = self.request
        if not request.judge:
            action = "Name the columns of judges: judge= (--judge)."
            raise InputError("no judge is named, so there are no verdicts to compare", action=action)
        return write_disagreements(self.sample, self.words, request.judge, path, value=request.label_column)

    def _judge_readings(self, estimate: Estimate) -> list[JsonDict]:
        """Return the rows of the estimates from judge and labels, the judge alone, and the labels alone."""
        request = self.request
        readings = compare_estimators(self.sample, estimate, request.confidence_level, request.interval)
        by_name = {row["name"]: row for row in readings}
        labels_alone = by_name.get(WEIGHTED)
        judge = request.judge[0]
        numeric_names: Mapping[str, str] = {}
        if self.table is not None:
            numeric_names = self.table.numeric_names
        is_proxy = next(iter(self.sample.proxy_names), None) in (judge, numeric_names.get(judge, judge))
        if is_proxy:
            judge_alone = by_name.get(PROXY)
        else:
            judge_alone = self._judged_share(judge)
        rows = [(CORRECTED, by_name[REPORTED])]
        if labels_alone is None:
            rows = [(LABELS_ONLY, by_name[REPORTED])]
        if judge_alone is not None:
            rows.append((JUDGE_ONLY, {**judge_alone, "judge": judge}))
        if labels_alone is not None:
            rows.append((LABELS_ONLY, labels_alone))
        keys = ("estimate", "confidence_interval", "judge")
        return [{"name": name, **{key: row[key] for key in keys if key in row}} for name, row in rows]

    def _judged_share(self, judge: str) -> JsonDict | None:
        """Return the row of the share of units with a judge's verdict that counts as 1, None without one."""
        # A study converts labels to numbers, but `words` are in the spelling of the verdicts.
        label_values = join_labels(self.sample, self.words).table()
        positive = [row.value for row in label_values if row.meaning == 1.0]
        for table in self.tables:
            for row in table.rows(self.request.confidence_level):
                of_judge = row.get("judge") == judge and row.get("metric") == "predicted_prevalence"
                if table.kind == "judge" and of_judge and row.get("class") in positive:
                    low, high = row["confidence_interval"] or (None, None)
                    # Without an unknown verdict, the share has no error.
                    if low == high:
                        row |= {"confidence_interval": None}
                    return row
        return None

    @property
    def _role_notes(self) -> tuple[str, ...]:
        """The recognised roles of a table's columns, as notes of a report."""
        if self.table is None:
            return ()
        roles = self._roles(self.table)
        return (roles["sentence"], *roles["notes"])

    def _roles(self, table: LabelledTable) -> JsonDict:
        """Return the roles of a table's columns, and how its labelled rows were chosen."""
        recognition = table.recognition
        labelled = self.sample.size - table.unanswered
        sentence = table.selection.description(len(table.rows), self.sample.population_size, labelled)
        if table.runs is not None:
            sentence = table.runs.sentence
        elif table.clusters is not None and table.selection.kind == UNKNOWN:
            sentence = f"{table.clusters.description} (clusters), {sentence}"
        elif table.clusters is not None:
            clusters = table.clusters.description
            sentence = f"{clusters}, taken as a random sample of whole groups (clusters)"
        return {
            **recognition.to_dict(),
            "chosen": str(table.selection),
            "sentence": f"{recognition.sentence(self._unused_proxy(table))}, {sentence}",
            "notes": list(recognition.notes),
        }

    def _unused_proxy(self, table: LabelledTable) -> str | None:
        """Return why the estimate does not use the proxy of a table; None if it does."""
        request = self.request
        is_stratifying = table.selection.kind == UNKNOWN or request.post_stratify is not None
        if isinstance(self.estimate, Estimates) or is_stratifying or request.margins is not None:
            return None
        if request.estimator != "auto" and not self.estimate.lam:
            return f"the estimator {request.estimator} does not use it"
        return unused_proxy_reason(self.sample, self.estimate)

    def _new_answers_label(self) -> str:
        """Return the path of the new answers, or words for answers in memory."""
        against = self.request.against
        if isinstance(against, str | Path):
            return str(against)
        return "the new answers"

    def _note_on_new_answers(self, new: NewVersion) -> str:
        """Return the note that the estimate is of new answers."""
        counts = new.to_dict()
        return (
            f"the estimate is for the answers in {self._new_answers_label()}: {counts['changed']:,} of "
            f"{counts['units']:,} differ from those that are stored in the sample, whose estimate is "
            f"{counts['old']['estimate']:.4g}"
        )


@keywords_from(EvaluationRequest)
def evaluate(
    sample: Any = None,
    labels: Any = None,
    *,
    read_population: PopulationReader | None = None,
    **options: Any,
) -> Evaluation:
    """Estimate a quantity from labels, with tables and verdicts.

    Parameters
    ----------
    sample : Sample, Study, table, path, list of paths, or text
        The sample, its file or the folder that `draw` wrote; a study or its folder; a table with labels in
        some or all rows, in memory or as a file; logs of one evaluation tool, one of each model; or a count
        such as `"47/50"`.
    labels : path, list of paths, table, or see `stratal.estimate`
        Labels of a sample. A study and a table contain their labels.
    chosen : str
        How the labelled rows of a table were chosen: `all` (every row was to be labelled; the default if at
        least 90% of the rows have a label), `random` (the default otherwise), `random-within:COLUMN`,
        `probability:COLUMN` (inclusion probabilities of independent draws), or `unknown` (rows are
        post-stratified by quantiles of the proxy; every requirement is UNDECIDED).
    proxy : str or sequence of str
        Column of the proxy of a table. This role, and those of `judge`, `id`, `value`, `predicted`, `model`
        and `compare`, are recognised by name and content if they are not declared; "none" is not a column.
    lists : str
        For a table with lists, such as the labels of retrieved passages: `rows` (each entry is a row, and the
        units are clusters), or one number for each unit: `mean`, `precision@K`, `hit@K`.
    sizes, cluster, weight, population_size, tags
        For a table: see `Sample.from_labelled`.
    read_population : callable, optional
        Reads the population of the sample again with further columns (sample, names). Ignored if
        `population=` is given.
    value : str or sequence of str
        Column of the label, or the columns of several annotators. Default for a sample: `label`.
    id : str
        Column of ids. For labels of a sample, `row` states that the rows are in the order of to_label.csv.
    positive : str
        The label that counts as 1; every other counts as 0.
    mapping : mapping of label to number, class or None
        The number or class that each label represents; None marks a missing answer.
    predicted, combine, estimand, estimator, cross_fit, calibration, features, target, outcome, bounds, limits
        See `stratal.estimate`. `predicted="none"`: labels are numbers. `predicted="predicted_class"`: labels
        are compared with the most probable class of the columns of a softmax.
    predicts : str or mapping of proxy to str
        The quantity that each proxy predicts, as in `Population.read`. It can replace an inference made at
        the draw, but not a declaration.
    population : path, table or Population
        All units, for calibration, for a coefficient, and for a table that was labelled elsewhere.
    post_stratify : str
        Weight the sample by this group, whose sizes in the population are known.
    margins : str or mapping
        Fit the weights to the known sizes of groups and means of proxies: `site,language`, or
        `regression:site,language`. For totals of the population that the sample does not contain: a file with
        the columns variable, level and total, or a mapping of each column to a mapping of levels to numbers
        of units.
    look : int
        Number of this planned look, from 1.
    confidence_level, interval
        Confidence level of all intervals, and method of the intervals for the estimate, its groups, metrics
        and comparisons of models. Comparisons of judges have separate methods.
    metric, classes : sequence of str
        Metrics (accuracy, precision, recall, f1, false_positive_rate, …; `confusion`, the share of each label
        and answer; `brier`, of a probability as the proxy), and the classes to report.
    compare : sequence of str
        Columns of the labels with the outcomes of several models.
    model : str
        Column of the models' names, if the labels have one row per unit and model.
    by : str
        Column of the groups, each of which gets its own estimate.
    groups : sequence of str
        Further columns of a table that its sample stores, so that `by=` can name them after a next round.
    judge : sequence of str
        Columns of verdicts, or proxies with scores, that are compared with the labels.
    failed_answers : {"missing", "wrong"}
        Whether failed answers in a log count as missing or as wrong. Default: wrong for requirements, missing
        otherwise.
    require : str or sequence of str
        Requirement that the whole interval must satisfy, such as `value>=.9` or `recall:cat>=.8`.
    against : path
        Answers of a new version of the model, joined by id; requirements then apply to these answers.
    answers : str
        Column of the new answers, or `old=new` if the sample's column has another name.
    new_labels : list of paths
        Labels of answers that changed.
    same_rows : bool
        Row numbers in files of labels are those of the sample's rows; see `read_labels`.

    Returns
    -------
    Evaluation

    Raises
    ------
    InputError, LabelError
        For contradictory options, missing columns, and labels that do not fit.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.2] * 50 + [0.8] * 50)
    >>> sample = stratal.designs.SimpleRandom(budget=20).draw(population, seed=7)
    >>> evaluation = stratal.evaluate(sample, [1.0, 0.0] * 10, require="value>=.9")
    >>> evaluation.estimate.value, evaluation.status
    (0.5, 'FAIL')
    """
    request = EvaluationRequest(**options)
    labelled_sample = read_labelled_sample(request, sample, labels)
    # A table contains its population.
    if labelled_sample.table is None:
        labelled_sample = _with_population(labelled_sample, read_population)
    if request.against is None:
        return _evaluate(labelled_sample)
    return _evaluate_new_version(labelled_sample)


def _with_population(
    labelled_sample: LabelledSample, read_population: PopulationReader | None
) -> LabelledSample:
    """Return the labelled sample with the population in the sample, for calibration and coefficients."""
    request = labelled_sample.request
    sample = labelled_sample.sample
    estimand = labelled_sample.estimand
    columns = estimand.numeric_columns if estimand.reads_population else ()
    if request.population is not None:
        if not columns and request.calibration is None:
            raise InputError(
                "population= (--population) would have no effect",
                allowed="with calibration= (--calibration), a table of labels, or for a coefficient",
                action="Leave it out.",
            )
        # Only estimates with features of other models need it.
        from stratal.estimation.calibrated import population_with_features

        units = population_with_features(sample, request.population, (*request.features, *columns))
    else:
        population = None if read_population is None else read_population(sample, columns)
        if population is None:
            return labelled_sample
        units = require_same_population(sample, population)
    return replace(labelled_sample, sample=replace(sample, population=units))


def _evaluate_new_version(labelled_sample: LabelledSample) -> Evaluation:
    """Return the evaluation of a new version's answers, as far as their outcomes are known."""
    # Few evaluations are of a new version.
    from stratal.estimation.requirement import assess_new_version
    from stratal.metrics.new_version import NEW_ANSWER, with_new_answers

    request = labelled_sample.request
    old = _evaluate(replace(labelled_sample, request=replace(request, require=None)))
    answers = _new_answers(labelled_sample)
    new = _compare_new_answers(request, old, answers)
    if new.described["compared"] and new.described["complete"]:
        sample = with_new_answers(labelled_sample.sample, answers)
        new_request = replace(request, predicted=NEW_ANSWER)
        result = _evaluate(replace(labelled_sample, sample=sample, request=new_request))
        return replace(result, new=new, old=old)
    verdicts = None
    if request.require is not None:
        verdicts = tuple(assess_new_version(new.to_dict(), list(request.requirements)))
        if labelled_sample.table is not None:
            verdicts = tuple(_undecided(verdict, labelled_sample, old.estimate) for verdict in verdicts)
    return replace(old, request=request, new=new, verdicts=verdicts)


def _evaluate(labelled_sample: LabelledSample) -> Evaluation:
    """Return the estimate, the tables and the verdicts that are requested of the labelled sample."""
    request = labelled_sample.request
    sample = labelled_sample.sample
    columns = labelled_sample.estimand.label_columns(sample)
    if columns and request.judge:
        raise no_effect_error("--judge", f"with one column of labels, not with {', '.join(columns)}")
    # The agreement of annotators and the notes are those of the first column.
    if columns:
        labelled_sample = replace(labelled_sample, column=columns[0])
    unscored = _count_failed_answers(labelled_sample)
    if request.failed_answers == WRONG:
        labelled_sample = labelled_sample.with_failed_as_wrong()
    result, labels = _estimate_and_labels(labelled_sample, columns)
    if isinstance(result, Estimates):
        _refuse_single_estimand_options(request)
    tables = compute_tables(labelled_sample)
    remarks = _remarks(labelled_sample, of_columns=bool(columns))
    for table in tables:
        if table.kind == "judge":
            remarks = [*judge_notes(table.rows(request.confidence_level)), *remarks]
    verdicts = None
    if request.require is not None:
        verdicts = tuple(_verdicts(labelled_sample, columns, result, tables))
    post_stratified = _post_stratified(labelled_sample, columns, result)
    if verdicts is not None and labelled_sample.table is not None:
        verdicts = tuple(_undecided(verdict, labelled_sample, result) for verdict in verdicts)
    is_first_model = not columns and labelled_sample.column != request.value_or_default
    return Evaluation(
        request=request,
        sample=sample,
        labels=labels,
        words=labelled_sample.labels_as_written,
        estimate=result,
        tables=tuple(tables),
        remarks=tuple(remarks),
        model=labelled_sample.column if is_first_model else None,
        verdicts=verdicts,
        unscored=unscored,
        study=labelled_sample.study,
        table=labelled_sample.table,
        post_stratified=post_stratified,
    )


def _is_unrepresentative(result: Estimate | Estimates) -> bool:
    """Return whether the labelled rows are not a random sample of their table, as far as columns show."""
    return bool(_note_codes(result) & NOT_AT_RANDOM)


def _note_codes(result: Estimate | Estimates) -> set[str]:
    """Return the codes of a result's notes."""
    return {note.code for note in result.notes if isinstance(note, Note)}


def _post_stratified(
    labelled_sample: LabelledSample, columns: Sequence[str], result: Estimate | Estimates
) -> Estimate | None:
    """Return the estimate weighted by answers or quantiles of the proxy, if rows were chosen by them."""
    if labelled_sample.table is None or columns or not isinstance(result, Estimate):
        return None
    if labelled_sample.sample.question.cluster is not None:
        # Clusters that were chosen by their rows are not a random sample within strata of rows.
        return None
    codes = _note_codes(result)
    if LABELS_BY_ANSWER in codes:
        column = str(labelled_sample.sample.question.answer)
        drawn = {str(answer) for answer in labelled_sample.sample.groups[column].tolist()}
        totals = labelled_sample.sample.totals.get(column)
        if totals is None or len(drawn) < len(totals):
            # Weights need a label and the number of rows for every answer.
            return None
    elif LABELS_BY_PROXY in codes:
        column = labelled_sample.sample.proxy_names[0]
    else:
        return None
    weighted = post_stratify(labelled_sample.sample, column)
    estimate_of_strata, _ = _estimate_and_labels(replace(labelled_sample, sample=weighted), columns)
    if isinstance(estimate_of_strata, Estimate):
        return estimate_of_strata
    return None


def _undecided(verdict: JsonDict, labelled_sample: LabelledSample, result: Estimate | Estimates) -> JsonDict:
    """Return a verdict, or UNDECIDED if the labelled rows are not known to be a random sample."""
    assert labelled_sample.table is not None
    if labelled_sample.table.selection.kind == UNKNOWN:
        reason = "how the labelled rows were chosen is unknown"
    elif _is_unrepresentative(result):
        reason = "the labelled rows are not a random sample of the table"
    else:
        return verdict
    return verdict | {"verdict": UNDECIDED, "more_labels": None, "reason": reason}


def _refuse_single_estimand_options(request: EvaluationRequest) -> None:
    """Refuse options that have no effect with several estimands."""
    for name, value in request.keywords("metric", "compare", "judge").items():
        if value:
            raise no_effect_error(f"--{name}", "with one estimand")


def _estimate_and_labels(
    labelled_sample: LabelledSample, columns: Sequence[str]
) -> tuple[Estimate | Estimates, Any]:
    """Return the estimate, or several, and the labels from which it is computed."""
    request = labelled_sample.request
    labels: Any = {name: labelled_sample.read_column(name) for name in columns} or labelled_sample.labels
    result = estimate(
        labelled_sample.sample,
        labels,
        bounds=labelled_sample.bounds,
        limits=request.limits,
        look=request.look,
        **request.estimand_options,
        **request.estimator_options,
    )
    if isinstance(result, Estimates):
        result = result.with_interval(request.interval)
    return result, labels


def _count_failed_answers(labelled_sample: LabelledSample) -> JsonDict | None:
    """Return the numbers of failed answers and missing scores; None if the labels are not from a log."""
    request = labelled_sample.request
    labels = {name: labelled_sample.read_column(name) for name in labelled_sample.label_columns}
    if all(column.failed is None for column in labels.values()):
        if request.failed_answers is not None:
            raise no_effect_error("--failed-answers", "with scores in the log of an evaluation tool")
        return None
    failed_counts = {}
    missing_counts = {}
    for name, column in labels.items():
        failed_counts[name if labelled_sample.models else ""] = column.failed_answers
        missing_counts[name] = len(column.ids) - column.answered - column.failed_answers
    counting_text = f"they count as {request.failed_answers or MISSING}"
    if request.failed_answers is None:
        counting_text = f"{counting_text}, and as {WRONG} for --require; --failed-answers changes this"
    return {"failed_answers": failed_counts, "missing_scores": missing_counts, "counted": counting_text}


def _verdicts(
    labelled_sample: LabelledSample,
    columns: Sequence[str],
    result: Estimate | Estimates,
    tables: list[Estimates],
) -> list[JsonDict]:
    """Return the verdicts on the requirements.

    By default, a failed answer counts against the requirement: as the lowest outcome for >=, and as the
    highest for <=.
    """
    # Few evaluations have requirements.
    from stratal.estimation.requirement import Requirement, assess_requirements

    request = labelled_sample.request
    level: JsonDict = {"confidence_level": request.confidence_level, "method": request.interval}
    any_failed = any(
        labelled_sample.read_column(name).failed_answers for name in labelled_sample.label_columns
    )
    if not any_failed or request.failed_answers is not None:
        return assess_requirements(result, list(request.requirements), tables=tables, **level)
    verdicts = []
    for text in request.requirements:
        failed_is_lowest = Requirement.parse(text).sign == ">="
        with_wrong = labelled_sample.with_failed_as_wrong(lowest=failed_is_lowest)
        worst_result, _ = _estimate_and_labels(with_wrong, columns)
        verdicts += assess_requirements(worst_result, [text], tables=compute_tables(with_wrong), **level)
    return verdicts


def _remarks(labelled_sample: LabelledSample, *, of_columns: bool) -> list[str]:
    """Return further notes: on the annotators' agreement, planned looks, and the estimated model.

    `of_columns` states whether the estimand uses several columns of labels, and not those of one model.
    """
    request = labelled_sample.request
    sample = labelled_sample.sample
    remarks = []
    try:
        predicted = request.predicted
        compared = compared_answers(labelled_sample.estimand, sample, labelled_sample.labels, predicted)
        labels = labels_with_sample_ids(sample, labelled_sample.labels)
        agreement = measure_agreement(labels, classes=compared is not None)
        if agreement is not None:
            remarks += [str(agreement), *agreement.warnings]
    except MissingExtraError as error:
        remarks.append(f"annotator agreement was not computed: {error}")
    if sample.looks is not None and request.look is None:
        remarks.append(
            f"looks were planned ({sample.looks}): this interval is valid only at the first look. At a later "
            "look, set look= (--look N)"
        )
    if not of_columns and labelled_sample.models and labelled_sample.column != request.value_or_default:
        text = f"the estimate is for {labelled_sample.column!r}, the first of the models compared"
        remarks.append(Note(FIRST_MODEL, text))
    return remarks


def _new_answers(labelled_sample: LabelledSample) -> Labels:
    """Return the answers of the new version, from the column of `answers` or the sample's own."""
    request = labelled_sample.request
    sample = labelled_sample.sample
    old_column, _, new_column = (request.answers or "").partition("=")
    column = new_column or old_column or request.answer_column or sample.question.answer or "answer"
    if isinstance(request.against, str | Path):
        try:
            return read_labels(request.against, id_name=sample.question.id, value=column)
        except MissingColumnError as error:
            raise error.with_action("Name the column of the new answers: answers= (--answers COL).") from None
    return labels_with_sample_ids(sample, request.against)


def _compare_new_answers(request: EvaluationRequest, result: Evaluation, answers: Labels) -> NewVersion:
    """Return the comparison of the new answers with the labels of the old ones."""
    # Few evaluations are of a new version.
    from stratal.metrics.new_version import new_version

    sample = result.sample
    old_column, equals, _ = (request.answers or "").partition("=")
    # A single name is that of both columns if the sample has it, and otherwise only that of the new answers.
    is_column_of_sample = equals or old_column in {*sample.shown, *sample.groups}
    new_labels = None
    mapping = request.mapping
    if result.table is not None and result.table.empty_values:
        # The labels that mean an empty cell may also be in the file of new labels.
        mapping = {**dict.fromkeys(result.table.empty_values), **(mapping or {})}
    if request.new_labels:
        new_labels = read_labels(
            *request.new_labels,
            id_name=request.id or sample.question.id,
            mapping=mapping,
            **request.keywords("value", "positive", "same_rows"),
        )
    bounds = None
    if isinstance(result.estimate, Estimate) and result.estimate.outcome == "bounded":
        bounds = result.estimate.bounds
    options = result.request.estimand_options | result.request.estimator_options
    return new_version(
        sample,
        result.labels,
        answers,
        old_answers=old_column if is_column_of_sample else None,
        new_labels=new_labels,
        bounds=bounds,
        **request.interval_options,
        **options,
    )
