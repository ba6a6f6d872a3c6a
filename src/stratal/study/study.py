"""`Study`: an open study folder for the page, the notebook and commands, and its interim results."""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from socket import gethostname
from typing import Self, Unpack

import numpy as np

from stratal.arrays import unit_scale
from stratal.designs import Sample
from stratal.errors import InputError, LabelError
from stratal.estimation.resolve import outcomes
from stratal.intervals.betting import random_order, sequence_interval
from stratal.intervals.interval import ConfidenceInterval, error_probabilities
from stratal.labels.annotation_tools import Task, ToolAnswers
from stratal.labels.labels import Labels
from stratal.labels.row_checks import refuse_other_rows
from stratal.protocols import JsonDict, Keywords
from stratal.study import creating, import_export, items
from stratal.study.creating import MEDIA_FOLDER, digest_of
from stratal.study.current_labels import completion_order, current_labels
from stratal.study.database import Connection, Database, StudyError, format_time, server_lock
from stratal.study.import_export import ImportResult
from stratal.study.integrity import require_integrity
from stratal.study.items import shown_item
from stratal.study.journal import PAGE_FILE_SECRET, Action, ActionDetails, append_setting, write_head
from stratal.study.permissions import OPERATOR, StudyRole, adjudicators_of
from stratal.study.question import ASKED, Answer, Disagreement, Form, Item, Progress, Receipt, StudyQuestion

# Returns seconds since 1970, as `time.time`.
Clock = Callable[[], float]

# Number of open disagreements that are read for an adjudicator; further ones follow after decisions on these.
MAX_DISAGREEMENTS = 200

# The stopping rule is evaluated again when the number of answers has grown by this factor, because each
# evaluation reads all labels. A study may therefore end 2% too late.
EVALUATION_GROWTH = 1.02


class Study:
    """An open study folder; opened by `create_study` and `open_study`.

    All threads of a process may share one object. Every method that saves an action has an argument
    `request`: a text of the client, such as a UUID, that is unique for each action of an annotator. If the
    same request arrives again (a retry after a broken connection), the method saves nothing and returns the
    first receipt with `repeated=True`. When a method returns, its data are on disk.

    Errors: `InputError` for an invalid answer or an unknown annotator; `StudyError` (with `kind`) if the
    folder cannot be read or written.

    Parameters
    ----------
    folder : Path
    database : Database
    clock : callable
        Returns the time in seconds since 1970.
    """

    def __init__(self, folder: Path, database: Database, clock: Clock) -> None:
        self.folder = folder
        self.media = folder / MEDIA_FOLDER
        self.database = database
        self.clock = clock
        self.id = self.setting("id") or ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database."""
        self.database.close()

    @property
    def form(self) -> Form:
        """All questions, with the current version of the rubric."""
        return Form.decode(self.setting("question") or "{}")

    @property
    def question(self) -> StudyQuestion:
        """The first question."""
        return self.form.first

    @property
    def annotators(self) -> tuple[str, ...]:
        """The annotators: their names in the journal, which may be pseudonyms."""
        with self.database.read() as connection:
            return creating.people_with_role(connection, "annotator")

    @property
    def people(self) -> tuple[str, ...]:
        """All people with a link: annotators and adjudicators, including those who are set aside."""
        with self.database.read() as connection:
            return creating.people_with_role(connection)

    @property
    def adjudicators(self) -> tuple[str, ...]:
        """The adjudicators: those who were named, or all annotators; without people who are set aside."""
        with self.database.read() as connection:
            return adjudicators_of(connection)

    @property
    def names(self) -> dict[str, str]:
        """Names by pseudonym; empty if there is no file of names."""
        return creating.read_names(self.folder)

    def excluded_annotators(self) -> list[str]:
        """Return the annotators whose labels are set aside."""
        with self.database.read() as connection:
            rows = connection.all("SELECT name FROM annotator WHERE aside = 1 ORDER BY name")
        return [row["name"] for row in rows]

    def setting(self, name: str) -> str | None:
        """Return a setting that is stored in the study, such as the secret of the page's tokens."""
        with self.database.read() as connection:
            return connection.setting(name)

    def save_settings(self, **settings: str) -> None:
        """Save settings."""
        with self.database.write() as connection:
            connection.save_settings(**settings)

    def save_new_setting(self, name: str, value: str) -> str:
        """Save a setting unless it has a value, which another process may have saved; return its value."""
        with self.database.write() as connection:
            stored_value = connection.setting(name)
            if not stored_value:
                connection.save_settings(**{name: value})
            return stored_value or value

    @contextmanager
    def transaction(self, *, durable: bool = True, verify: bool = False) -> Iterator[Connection]:
        """Yield a connection whose changes are saved completely or not at all; see `Database.write`.

        With `verify`, a damaged study raises an error; see `verified`.
        """
        with self.database.write(durable=durable) as connection:
            # The time after the lock was obtained, so that it is later than the answers of others.
            connection.now = self.clock()
            if verify:
                require_integrity(connection, self.folder)
            yield connection
            last_line = connection.one("SELECT seq, hash FROM journal ORDER BY seq DESC LIMIT 1")
        if durable and last_line is not None:
            write_head(self.folder, last_line["seq"], last_line["hash"])

    @contextmanager
    def verified(self) -> Iterator[Connection]:
        """Yield a connection to a consistent state of the study, after a successful `check_study`.

        Raises
        ------
        StudyError
            Kind `damaged`, with the first problem.
        """
        with self.database.read() as connection:
            require_integrity(connection, self.folder)
            yield connection

    @contextmanager
    def _reading_as(self, annotator: str) -> Iterator[Connection]:
        """Yield a connection for reading as one annotator; raise an error for an unknown name."""
        with self.database.read() as connection:
            creating.require_person(connection, annotator)
            yield connection

    def labels(self, column: str | None = None, *, as_text: bool = False) -> Labels:
        """Return the current labels, for `stratal.estimate(study.sample(), study.labels())`.

        For several questions, `column` is one of `study.form.columns`; by default the first. With `as_text`,
        the labels are the answers, such as Pass, instead of their numbers: classes to compare with those of a
        model or a judge. Raises `StudyError` of kind `damaged` if the journal or a file of the study was
        changed.
        """
        with self.verified() as connection:
            return current_labels(connection, self.form, str(self.folder), column, as_text=as_text)

    def sample(self) -> Sample:
        """Return the sample with all rounds; raises `StudyError` if its file was changed."""
        with self.database.read() as connection:
            row = connection.one("SELECT number, file, digest FROM round ORDER BY number DESC LIMIT 1")
        path = creating.round_file(self.folder, row["number"], row["file"])
        if not path.is_file() or digest_of(path) != row["digest"]:
            problem = f"{path} is missing, or was changed after it was drawn"
            raise StudyError(problem, kind="damaged", action="Restore a backup (stratal study backup).")
        return Sample.read(path)

    @contextmanager
    def serving(self, address: str) -> Iterator[None]:
        """Reserve the study for one server; a second one gets a `StudyError` of kind `served`."""
        with server_lock(self.folder, self.setting("server") or ""):
            since = format_time(self.clock())
            try:
                self.save_settings(
                    server=f"{address} (process {os.getpid()} on {gethostname()}, since {since})"
                )
            except StudyError as error:
                # A full disk may have room again, and the page reports it. After other errors no answer can
                # ever be stored, so that the server must not start.
                if error.kind not in ("disk-full", "locked"):
                    raise
            yield

    def restrict_file_permissions(self) -> None:
        """Remove the permission of other accounts of this computer to read the database.

        All links can be computed from the secret in the database. A copied or unpacked study may have other
        permissions than a new one.
        """
        # The file may belong to another account, or the file system may have no permissions.
        with suppress(OSError):
            mode = self.database.path.stat().st_mode
            if mode & 0o007:
                self.database.path.chmod(mode & 0o770)

    def next_item(self, annotator: str) -> Item | None:
        """Return the current item of this annotator, which is reserved until it is answered.

        None if no item is left for this annotator, or the interval is narrow enough (see `progress`).
        """
        return next(iter(self.next_items(annotator)), None)

    def next_items(self, annotator: str, *, ahead: int = 0) -> tuple[Item, ...]:
        """Return the current item and up to `ahead` further ones, which are reserved; see `next_item`."""
        with self._reading_as(annotator) as connection:
            assigned = items.assigned_items(connection, annotator, 1 + ahead)
            has_enough_items = len(assigned) >= items.max_assigned_items(connection, ahead)
            if has_enough_items or not items.may_get_items(connection, annotator):
                return tuple(shown_item(connection, annotator, item) for item in assigned)
        # Reservations may be lost in a power failure, in contrast to answers.
        with self.transaction(durable=False) as connection:
            assigned = items.assign_next(connection, annotator, ahead)
            return tuple(shown_item(connection, annotator, item) for item in assigned)

    def item(self, annotator: str, item: str) -> Item:
        """Return an item that was assigned to this annotator (to go back, or after a reload).

        Raises `StudyError` of kind `missing` for any other id.
        """
        with self._reading_as(annotator) as connection:
            number = items.find_assigned_item(connection, annotator, item)["item"]
            return shown_item(connection, annotator, number)

    def history(self, annotator: str, *, before: int | None = None, limit: int = 50) -> tuple[Answer, ...]:
        """Return this annotator's current answers with `seq` below `before`, newest first."""
        with self._reading_as(annotator) as connection:
            return items.history(connection, annotator, before, limit)

    def progress(self, annotator: str) -> Progress:
        """Return the progress of the study, for one annotator."""
        with self._reading_as(annotator) as connection:
            return items.annotator_progress(connection, annotator, self.clock())

    def disagreements(self, *, limit: int = 50) -> tuple[Disagreement, ...]:
        """Return the undecided items with different answers, in the study's order."""
        with self.database.read() as connection:
            return items.disagreements(connection, limit)

    def assigned_disagreements(
        self, annotator: str, *, limit: int = 20
    ) -> tuple[int, tuple[Disagreement, ...]]:
        """Return the number of open disagreements that are assigned to an adjudicator, and the first of them.

        An adjudicator without open disagreements gets the first ones of others; other annotators get none.
        """
        adjudicators = self.adjudicators
        if annotator in adjudicators:
            open_disagreements = self.disagreements(limit=MAX_DISAGREEMENTS)
        else:
            open_disagreements = ()
        assigned = [
            entry
            for entry in open_disagreements
            if items.assigned_adjudicator(entry, adjudicators) == annotator
        ]
        return len(assigned), tuple(assigned or open_disagreements)[:limit]

    def save_action(
        self,
        annotator: str,
        action: Action,
        item: str | None = None,
        value: object = None,
        *,
        ahead: int | None = None,
        **details: Unpack[ActionDetails],
    ) -> Receipt:
        """Save an action of an annotator on an item; `details` are `note`, `seconds` and `request`.

        The methods below, such as `submit`, are shortcuts for one action each. With `ahead`, the next item
        and this number of further ones are reserved in the same transaction, since a second transaction would
        have to wait again.
        """
        with self.transaction() as connection:
            receipt = self._save(connection, annotator, action, item, value, **details)
            if ahead is not None and items.may_get_items(connection, annotator):
                items.assign_next(connection, annotator, ahead)
        if action in ("submit", "skip"):
            # The answer is saved. If the stopping rule cannot be evaluated now, the next answer evaluates it.
            with suppress(StudyError):
                update_stopping(self)
        return receipt

    def _save(
        self,
        connection: Connection,
        annotator: str,
        action: Action,
        item: str | None = None,
        value: object = None,
        roles: frozenset[StudyRole] | None = None,
        **details: Unpack[ActionDetails],
    ) -> Receipt:
        """Save an action in a transaction; `roles` are those of the acting person, if not the annotator."""
        creating.require_person(connection, annotator)
        form = items.read_form(connection)
        entry = import_export.journal_entry(self.id, form, annotator, action, item, value, **details)
        return items.save(connection, entry, roles)

    def submit(self, annotator: str, item: str, value: object, **details: Unpack[ActionDetails]) -> Receipt:
        """Save an answer; it replaces an earlier answer of this annotator (`action` is then `change`).

        `value` is the name of a choice, a number of the scale or a class. For a pair, it is the column of the
        better side or `tie` (not left or right, because the sides are shuffled). For several questions, it is
        a mapping of the question's name to its answer. `details`: `note` (text), `seconds` of working time,
        and `request`.
        """
        return self.save_action(annotator, "submit", item, value, **details)

    def skip(self, annotator: str, item: str, **details: Unpack[ActionDetails]) -> Receipt:
        """Save that this annotator skips an item, which may be assigned to another. Otherwise as `submit`."""
        return self.save_action(annotator, "skip", item, **details)

    def undo(self, annotator: str, *, request: str | None = None) -> Receipt:
        """Undo this annotator's last answer or skip; each further call undoes the previous one.

        `item` of the receipt is the one that `next_item` returns next. Raises `StudyError` of kind `refused`
        if there is no action to undo.
        """
        return self.save_action(annotator, "undo", request=request)

    def flag(
        self, annotator: str, item: str, *, on: bool = True, **details: Unpack[ActionDetails]
    ) -> Receipt:
        """Flag an item for the owner of the study, or remove the flag. `details`: `note`, `request`."""
        return self.save_action(annotator, "flag" if on else "unflag", item, **details)

    def adjudicate(
        self, annotator: str, item: str, value: object, **details: Unpack[ActionDetails]
    ) -> Receipt:
        """Save a decision on an item, which replaces the answers as its label. `details`: `note`, `request`.

        A later decision replaces it, and the value None removes it.
        """
        return self.save_action(annotator, "adjudicate", item, value, **details)

    def set_aside(self, annotator: str, *, reason: str = "") -> Receipt:
        """Exclude all labels of an annotator without deleting them; others get the items."""
        with self.transaction() as connection:
            return self._save(connection, annotator, "set-aside", roles=OPERATOR, note=reason)

    def take_back(self, annotator: str, *, reason: str = "") -> Receipt:
        """Include the labels of an annotator again, after they were set aside."""
        with self.transaction() as connection:
            return self._save(connection, annotator, "take-back", roles=OPERATOR, note=reason)

    def add_annotator(self, name: str) -> str:
        """Add an annotator; return the name in the journal, which may be a pseudonym."""
        with self.transaction() as connection:
            return creating.add_person(connection, self.folder, name)

    def set_rubric(self, text: str) -> int:
        """Change the rubric (the instructions for annotators); return its new version number."""
        with self.transaction() as connection:
            first, *others = items.read_form(connection).questions
            first = replace(first, rubric=text, rubric_version=first.rubric_version + 1)
            form = Form(questions=(first, *others))
            version = str(first.rubric_version)
            connection.save_settings(question=form.encode(), rubric_version=version)
            append_setting(connection, version, text, "rubric")
        return first.rubric_version

    def reserve_for_page_file(
        self,
        annotator: str,
        *,
        items: int | None = None,
        write: Callable[[tuple[Item, ...]], None] | None = None,
    ) -> tuple[Item, ...]:
        """Reserve all free items, or up to `items`, for an annotator's page in one file, and return them.

        `write` is called with them before the transaction ends: if it fails, no item is reserved.
        """
        with self.transaction(verify=True) as connection:
            numbers = import_export.open_item_numbers(connection, annotator, items)
            reserved_items = tuple(shown_item(connection, annotator, number) for number in numbers)
            if write is not None:
                write(reserved_items)
            return reserved_items

    def import_actions(
        self,
        text: str,
        *,
        source: str = "labels file",
        annotator: str | None = None,
        dry_run: bool = False,
    ) -> JsonDict:
        """Save the actions in a labels file from a page in one file, all of them or none.

        The file must contain the key of its annotator's page, unless `annotator` confirms the annotator.
        Returns the numbers of `saved` actions and of actions that were saved before (`repeated`), and by
        annotator the numbers of `new_answers`, `changed_answers` and `withdrawn_answers`.
        """
        with self.transaction(verify=True) as connection:
            counts = import_export.import_actions(connection, text, source, self.folder, annotator)
            if dry_run:
                connection.rollback()
        return counts

    def page_key(self, annotator: str) -> str:
        """Return the key of the annotator's page in one file."""
        secret = self.setting(PAGE_FILE_SECRET) or self.save_new_setting(
            PAGE_FILE_SECRET, secrets.token_hex(32)
        )
        return import_export.page_key(secret, self.id, annotator)

    def tasks(
        self,
        *,
        annotator: str | None = None,
        items: int | None = None,
        write: Callable[[list[Task]], None] | None = None,
    ) -> list[Task]:
        """Return the items that still need an answer as tasks for annotation tools.

        With an annotator, they are reserved until the answers are imported. `write` is called with them
        before the transaction ends: if it fails, no item is reserved.
        """
        with self.transaction(verify=True) as connection:
            token = self.sample().question.sample_token
            tasks = [
                replace(task, token=token) for task in import_export.study_tasks(connection, annotator, items)
            ]
            if write is not None:
                write(tasks)
            return tasks

    def import_answers(
        self,
        answers: ToolAnswers,
        *,
        annotator: Mapping[str, str] | str | None = None,
        same_rows: bool = False,
        dry_run: bool = False,
    ) -> ImportResult:
        """Save the answers from an annotation tool, all of them or none; see `stratal study import`.

        `annotator` is the annotator of all answers, or a mapping of the tool's names to the study's. With
        `dry_run`, the result is returned without saving. If ids are row numbers, a table must contain the
        `sample_token` of the study, which identifies the rows, unless `same_rows` is true.
        """
        answers_with_token = [entry for entry in answers.answers if entry.token is not None]
        if answers_with_token and not same_rows:
            # A place consists of the source and the row: `labels.csv, row 3`.
            places = [entry.place.rpartition(", ") for entry in answers_with_token]
            labels = Labels(
                ids=tuple(entry.id for entry in answers_with_token),
                values=tuple(entry.value for entry in answers_with_token),
                places=tuple(row for _, _, row in places),
                source=places[0][0],
                tokens=tuple(str(entry.token) for entry in answers_with_token),
            )
            refuse_other_rows(self.sample(), labels)
        with self.transaction(verify=True) as connection:
            result = import_export.import_answers(connection, answers, annotator, self.folder)
            if dry_run:
                connection.rollback()
        if not dry_run:
            with suppress(StudyError):
                update_stopping(self)
        return replace(result, applied=not dry_run)


def estimate_options(study: Study, column: str | None = None) -> Keywords:
    """Return the bounds of the outcome or the estimand that a question implies, as keywords of `estimate`."""
    form = study.form
    name = form.column_name(column)
    question, component = form.columns[name]
    # The outcome of one of several choices is 0 or 1, whose bounds need no declaration.
    if component or not question.is_numeric:
        return {}
    if question.when:
        return {"estimand": f"ratio_of_means:{name},{name}_{ASKED}"}
    is_zero_or_one = question.bounds == (0.0, 1.0) and len(question.choices) == 2
    if is_zero_or_one or question.bounds is None:
        return {}
    return {"bounds": question.bounds}


def sample_for_column(study: Study, column: str | None = None) -> Sample:
    """Return the study's sample; it declares whether labels are compared with the answers of the model.

    Numeric labels are not.
    """
    sample = study.sample()
    form = study.form
    question, component = form.columns[form.column_name(column)]
    if component or question.is_numeric:
        return replace(sample, question=sample.question.refine(predicted=False))
    if sample.question.answer is None:
        return sample
    return replace(sample, question=sample.question.refine(predicted=True))


def anytime_interval(
    study: Study, confidence_level: float = 0.95, column: str | None = None
) -> ConfidenceInterval:
    """Return the anytime-valid interval: it may be computed at any time, and labelling may stop at any time.

    It is a betting interval (`stratal.intervals.betting`) computed from the labels in the order in which they
    were saved. It assumes only that the order of the items is random and that skips are equally frequent in
    all strata. It does not use proxies and is therefore wider than the interval of the estimate. `column` is
    one of the study's outcomes (default: the first).

    Raises
    ------
    InputError
        For designs with unequal probabilities, and outcomes without bounds.
    """
    sample = sample_for_column(study, column)
    low, high = _require_anytime_bounds(study, sample, column)
    with study.verified() as connection:
        rows, labelled_mask = completion_order(connection, sample)
        labels = current_labels(connection, study.form, str(study.folder), column)
    labelled_units = outcomes(sample, labels)
    z = np.full(sample.size, np.nan)
    z[labelled_units.labelled] = labelled_units.z
    # An answer that means no answer is nonresponse.
    labelled_mask &= ~np.isnan(z[rows])
    scaled_outcomes = unit_scale(z[rows[labelled_mask]], (low, high))
    # Number of units drawn in each round and stratum (R, H).
    drawn_counts = np.zeros((int(sample.round.max(initial=1)), len(sample.summary.sizes)), np.int64)
    np.add.at(drawn_counts, (sample.round - 1, sample.stratum), 1)
    order = random_order(
        sample.stratum[rows], labelled_mask, sample.summary.sizes, drawn_counts, sample.round[rows] - 1
    )
    probabilities = error_probabilities(confidence_level, "two-sided")
    scaled_low, scaled_high = sequence_interval(scaled_outcomes, order, *probabilities)
    # No value is compatible with the labels.
    if scaled_low > scaled_high:
        problem = "labels changed over time by more than chance can explain: no single value fits all of them"
        action = "Check whose labels changed (drift), or compute the estimate once all labels have arrived."
        raise InputError(problem, action=action)
    return ConfidenceInterval(
        low=low + (high - low) * scaled_low,
        high=low + (high - low) * scaled_high,
        confidence_level=confidence_level,
        method="betting-anytime",
    )


def _require_anytime_bounds(study: Study, sample: Sample, column: str | None) -> tuple[float, float]:
    """Return the bounds of an outcome; refuse designs and outcomes without an anytime-valid interval."""
    if not sample.design.allows_label_based_rounds:
        problem = "the anytime-valid interval requires a simple random or stratified sample"
        action = "Compute the estimate once, when all labels have arrived: stratal.estimate."
        raise InputError(problem, given=f"design '{sample.design.kind}'", action=action)
    form = study.form
    question, component = form.columns[form.column_name(column)]
    is_ratio = "estimand" in estimate_options(study, column)
    if is_ratio or (question.is_numeric and question.bounds is None):
        problem = "the anytime-valid interval requires a number with bounds for every item"
        allowed = "a bounded number, such as a choice that counts as 0 or 1"
        raise InputError(problem, given=question.name, allowed=allowed)
    # The outcome of one of several choices, and the outcome of a class (right or wrong), is 0 or 1.
    if component or question.bounds is None:
        return 0.0, 1.0
    return question.bounds


def update_stopping(study: Study, confidence_level: float = 0.95) -> bool:
    """Evaluate whether the interval is as narrow as requested, and store the result; return it.

    The evaluation is repeated when the number of answers has grown by `EVALUATION_GROWTH`. An anytime-valid
    interval is valid at these times.
    """
    with study.database.read() as connection:
        requested_half_width, rounds, answer_count = _stopping_inputs(connection)
        if not requested_half_width:
            return False
        if connection.setting("enough") == "yes":
            return True
        if answer_count < max(1, int(connection.setting("next_look") or 0)):
            return False
    try:
        half_width = anytime_interval(study, confidence_level).width / 2
        is_narrow_enough = half_width <= float(requested_half_width)
    except (InputError, LabelError):
        # Without an interval, labelling continues.
        is_narrow_enough = False
    with study.database.write() as connection:
        # If another half-width or round was saved meanwhile, the result is out of date.
        if _stopping_inputs(connection)[:2] != (requested_half_width, rounds):
            return False
        next_evaluation = max(answer_count + 1, math.ceil(answer_count * EVALUATION_GROWTH))
        connection.save_settings(enough="yes" if is_narrow_enough else "no", next_look=str(next_evaluation))
    return is_narrow_enough


def _stopping_inputs(connection: Connection) -> tuple[str | None, int, int]:
    """Return the requested half-width, the number of rounds and the number of answers."""
    (rounds,) = connection.one("SELECT count(*) FROM round")
    (done,) = connection.one("SELECT done FROM tally")
    return connection.setting("half_width"), int(rounds), int(done)
