"""The tables of an evaluation: metrics, comparison of models, judges, questions of a study, and groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from shlex import quote

from stratal.designs.sample import Sample, with_declared_scores
from stratal.errors import InputError, check_choice, list_first, suggest_names
from stratal.estimation.entry_points import at_look, estimate
from stratal.estimation.estimand import Estimand
from stratal.estimation.estimates import Estimates, with_intervals
from stratal.estimation.resolve import class_column, compared_column
from stratal.evaluation.labelled_sample import LabelledSample
from stratal.evaluation.request import BRIER, CONFUSION
from stratal.question.column_words import CONFIDENCE_WORDS
from stratal.question.decoding import truth_number
from stratal.question.facts import words_of_name
from stratal.question.scores import class_probability
from stratal.question.vocabulary import METRIC_SYNONYMS, average_name

# Keys with classes in the label of a row of a judge's table: the class by people, and by the judge.
_CLASS_KEYS = ("class", "judged")

# Maximum number of classes that a remark names.
_MAX_CLASSES_NAMED = 10

# Modules that only some tables need are imported where they are used.


def compute_tables(labelled_sample: LabelledSample) -> list[Estimates]:
    """Return the tables that are requested: metrics, comparison, judges, questions and groups."""
    request = labelled_sample.request
    sample = labelled_sample.sample
    tables = []
    if request.metric:
        tables.append(_metric_table(labelled_sample))
    if labelled_sample.models:
        from stratal.metrics.comparison import compare

        outcomes = {name: labelled_sample.read_column(name) for name in labelled_sample.models}
        tables.append(compare(sample, outcomes, bounds=labelled_sample.bounds, **request.target_option))
    if request.judge:
        tables += _judge_tables(labelled_sample)
    if labelled_sample.study_questions:
        tables.append(_question_table(labelled_sample))
    if request.by is not None:
        options = request.estimand_options | request.estimator_options | {"bounds": labelled_sample.bounds}
        tables.append(estimate(sample, labelled_sample.labels, by=request.by, **options))
    tables = with_intervals(tables, request.interval)
    if request.look is None:
        return tables
    return [at_look(table, sample, request.look) for table in tables]


def _metric_table(labelled_sample: LabelledSample) -> Estimates:
    """Return the metrics of classes that are requested, the confusion matrix and the Brier score."""
    for name in labelled_sample.request.metric:
        _require_metric(name)
    tables = []
    names = tuple(name for name in labelled_sample.request.metric if name not in (BRIER, CONFUSION))
    if names:
        tables.append(_class_table(labelled_sample, names))
    if CONFUSION in labelled_sample.request.metric:
        tables.append(_confusion_matrix(labelled_sample))
    if BRIER in labelled_sample.request.metric:
        tables.append(_brier_score(labelled_sample))
    if len(tables) == 1:
        return tables[0]
    return replace(tables[0], estimates=tuple(row for table in tables for row in table), joint=None)


def _require_metric(name: str) -> None:
    """Raise an error if a name is not that of a metric of classes."""
    from stratal.metrics.class_functions import METRICS, is_f_measure

    metrics = (*METRICS, CONFUSION, BRIER)
    if name in metrics or is_f_measure(name):
        return
    action = None
    if Estimand.class_of_kind(name) is not None or average_name(name) is not None:
        action = f"It is an estimand: estimand={name!r} (--estimand {name})."
    raise InputError(
        "no such metric",
        given=repr(name),
        allowed=suggest_names(name, metrics, synonyms=METRIC_SYNONYMS),
        action=action,
    )


def _class_table(labelled_sample: LabelledSample, names: Sequence[str]) -> Estimates:
    """Return the metrics of classes with the names, for the requested classes."""
    from stratal.metrics.class_report import ClassReport

    request = labelled_sample.request
    sample = labelled_sample.sample
    labels = labelled_sample.labels
    columns = {"labels": labels, "predicted": request.answer_column}
    entries = {str(entry) for name, values in columns.items() for entry in class_column(sample, values, name)}
    # `None` is a missing label or answer.
    classes = sorted(entries - {"None"})
    for name in request.classes:
        check_choice("class among the labels and answers", name, classes)
    report = ClassReport(names, request.classes, predicted=request.answer_column)
    table: Estimates = estimate(sample, labels, estimand=report, **request.target_option)
    return table


def _brier_score(labelled_sample: LabelledSample) -> Estimates:
    """Return the Brier score of each proxy that is a probability, for the named classes if there are any."""
    request = labelled_sample.request
    options = request.target_option
    sample = _with_score_of_class(labelled_sample)
    table: Estimates = estimate(sample, labelled_sample.labels, estimand="calibration", **options)
    rows = []
    for row in table:
        if row.label["metric"] != BRIER:
            continue
        class_name = row.label["class"]
        if not request.classes or class_name in request.classes:
            rows.append(replace(row, label={"metric": BRIER, "class": class_name}))
    return replace(table, estimates=tuple(rows), kind="metrics", joint=None, remarks=())


def _with_score_of_class(labelled_sample: LabelledSample) -> Sample:
    """Return the sample with its proxy as the probability of the requested class, if labels are classes."""
    request = labelled_sample.request
    sample = labelled_sample.sample
    are_declared = any(score.of_class is not None for score in sample.question.scores)
    if are_declared or compared_column(sample, labelled_sample.labels, request.predicted) is None:
        return sample
    names = sample.proxy_names
    if len(request.classes) != 1 or len(names) != 1:
        raise InputError(
            "brier requires the probability of one class",
            given=f"classes {', '.join(map(repr, request.classes)) or 'none'}; "
            f"probabilities {', '.join(map(repr, names)) or 'none'}",
            allowed="one class and its probability",
            action="Name both: classes= (--class CLASS) and proxy= (--proxy COL); or declare the class of "
            "each column: predicts= (--predicts COL=class:CLASS).",
        )
    name = names[0]
    class_name = request.classes[0]
    score = sample.question.score(name)
    # A confidence is the probability of the answer, whatever its class. If the user names the proxy together
    # with the class, it is the probability of this class.
    is_of_answers = bool(words_of_name(name) & CONFIDENCE_WORDS) or (score is not None and score.declared)
    if score is not None and score.is_probability and is_of_answers and name not in request.proxy:
        raise InputError(
            f"{name!r} is not the probability of the class {class_name!r}",
            given=f"{score.meaning} ({'declared' if score.declared else 'inferred'})",
            allowed="a proxy that is declared as the probability of the class",
            action=f"Use such a column. If {name!r} is this probability, declare it: "
            f"predicts={f'class:{class_name}'!r} (--predicts {quote(f'{name}=class:{class_name}')}).",
        )
    return with_declared_scores(sample, {name: class_probability(class_name)})


def _confusion_matrix(labelled_sample: LabelledSample) -> Estimates:
    """Return the share of all units that have each pair of a label and an answer of the model.

    If there are too many classes, the matrix has the named ones, or else the most frequent ones.
    """
    from stratal.metrics.judges import JudgeReport, most_frequent_classes

    answer = labelled_sample.request.answer_column or labelled_sample.sample.question.answer
    if answer is None:
        raise InputError(
            "a confusion matrix requires the model's answers",
            action="Name their column: predicted= (--predicted COL).",
        )
    options = labelled_sample.request.target_option
    classes, other_classes = most_frequent_classes(labelled_sample.sample, labelled_sample.labels, answer)
    named_classes = list(dict.fromkeys(labelled_sample.request.classes))
    remarks: tuple[str, ...] = ()
    if other_classes and len(named_classes) > 1:
        classes = named_classes
    elif other_classes:
        remarks = (_remark_on_other_classes(classes, other_classes),)
    estimand = JudgeReport((answer,), classes)
    table: Estimates = estimate(labelled_sample.sample, labelled_sample.labels, estimand=estimand, **options)
    rows = []
    for row in table:
        if row.label["metric"] == "share":
            label = {"metric": CONFUSION, "class": row.label["class"], "answer": row.label["judged"]}
            rows.append(replace(row, label=label))
    remarks = (*table.remarks, *remarks)
    return replace(table, estimates=tuple(rows), kind="metrics", joint=None, remarks=remarks)


def _remark_on_other_classes(classes: Sequence[str], other_classes: Sequence[str]) -> str:
    """Return the remark on the classes that a confusion matrix leaves out."""
    names = list_first(map(repr, other_classes), _MAX_CLASSES_NAMED)
    return (
        f"the confusion matrix has the {len(classes)} most frequent classes of the labels, without {names}; "
        "to choose other classes, name two or more: classes= (--class CLASS,…)"
    )


def _judge_tables(labelled_sample: LabelledSample) -> list[Estimates]:
    """Return the agreement of judges with people: for all units and, for verdicts, by requested groups."""
    from stratal.metrics.judges import JudgeReport

    request = labelled_sample.request
    sample = labelled_sample.sample
    report = JudgeReport(request.judge)
    judges_are_proxies = set(report.judges) <= set(sample.proxy_names)
    if judges_are_proxies:
        labels = labelled_sample.labels
    else:
        labels = labelled_sample.labels_as_written
    tables = []
    # The groups are first, so that readers notice a group with lower agreement.
    if request.by is not None and not judges_are_proxies:
        tables.append(estimate(sample, labels, estimand=report, by=request.by, **request.target_option))
    tables.append(estimate(sample, labels, estimand=report, **request.target_option))
    return [_in_words_of_labels(table, labelled_sample) for table in tables]


def _in_words_of_labels(table: Estimates, labelled_sample: LabelledSample) -> Estimates:
    """Return a judge's table with verdicts such as 0 and 1 in words of the labels, such as pass and fail."""
    texts, mapping = labelled_sample.labels_as_written.interpreted()
    label_words = {
        f"{text:g}" if isinstance(text, float) else str(text) for text in texts.tolist() if text is not None
    }
    classes = {str(row.label[key]) for row in table for key in _CLASS_KEYS if row.label.get(key)}
    # Classes that occur only among the verdicts.
    verdict_numbers = {text: truth_number(text) for text in classes - label_words}
    if not verdict_numbers or not set(verdict_numbers.values()) <= {0.0, 1.0}:
        return table
    word_of_number = {number: word for word, number in mapping.numbers(label_words).items()}
    if len(word_of_number) < len(label_words):
        # Several words count as the same number.
        return table
    names = {text: word_of_number.get(number, text) for text, number in verdict_numbers.items()}
    rows = []
    for row in table:
        renamed = {
            key: names.get(str(row.label[key]), row.label[key]) for key in _CLASS_KEYS if key in row.label
        }
        rows.append(replace(row, label={**row.label, **renamed}))
    return replace(table, estimates=tuple(rows))


def _question_table(labelled_sample: LabelledSample) -> Estimates:
    """Return an estimate for each question of a study that has answers."""
    # The modules of studies, with their database, are imported only for studies.
    from stratal.study import estimate_study, open_study

    rows = []
    remarks = []
    assert labelled_sample.study is not None
    with open_study(labelled_sample.study, read_only=True) as study:
        for name in labelled_sample.study_questions:
            if study.labels(name).answered:
                row = estimate_study(study, name, **labelled_sample.request.target_option)
                rows.append(replace(row, label={"question": name}))
            else:
                remarks.append(f"question {name!r} has no answers yet, so it has no estimate")
    return Estimates.from_rows(labelled_sample.sample, rows, "questions", sorted(remarks))
