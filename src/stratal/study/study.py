"""`Study`: an open study folder, as the page, the notebook and commands use it; and its interim results."""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from socket import gethostname
from typing import Any, Self, Unpack

import numpy as np

from stratal.arrays import BoolArray, IntArray
from stratal.designs import Disagreements, Sample
from stratal.designs.extending import last_round, require_same_draw
from stratal.errors import InputError, LabelError, not_positive
from stratal.estimation.entry_points import estimate
from stratal.estimation.estimand import as_estimand
from stratal.estimation.estimate import Estimate
from stratal.estimation.resolve import outcomes
from stratal.intervals.betting import random_order, sequence_interval
from stratal.intervals.interval import ConfidenceInterval, tail_shares
from stratal.intervals.looks import PlannedLooks
from stratal.labels.annotation_tools import Task, ToolAnswers
from stratal.labels.labels import ADJUDICATED, Labels, refuse_other_rows
from stratal.planning import next_round
from stratal.planning.selection import Selection, usual_round
from stratal.population.population import Population
from stratal.randomness import id_texts
from stratal.study import creating, exchange, items
from stratal.study.creating import MEDIA, add_items, digest_of
from stratal.study.database import Connection, Database, StudyError, serving, written_time
from stratal.study.exchange import ImportResult
from stratal.study.items import shown_item
from stratal.study.journal import PAGE_FILE_SECRET, Action, How, append_setting, keep_head
from stratal.study.permissions import OPERATOR, Role, adjudicators_of
from stratal.study.question import ASKED, Answer, Disagreement, Form, Item, Progress, Receipt, StudyQuestion
from stratal.study.soundness import require_sound

# Returns seconds since 1970, as `time.time`.
Clock = Callable[[], float]

# Open disagreements that are looked at for an adjudicator; of more, the rest come once these are decided.
NEXT = 200

# The interval is looked at again after so many times as many answers.
LOOKS = 1.02


class Study:
    """A study folder that is open; made by `create_study` and `open_study`.

    One object serves all threads of a process. Every method that saves takes `request`, a text of the
    client's choosing (a UUID) that is unique for each action of an annotator: when the same request comes
    again (a retry after a broken connection), the receipt of the first comes back with `repeated=True`, and
    nothing is saved twice. What a method returns is on disk.

    Errors: `InputError` for an answer that the question does not take or an unknown annotator; `StudyError`
    (with `kind`) for what the folder cannot do.

    Parameters
    ----------
    folder : Path
    database : Database
    clock : callable
    """

    def __init__(self, folder: Path, database: Database, clock: Clock) -> None:
        self.folder = folder
        self.media = folder / MEDIA
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
        """All questions, with the rubric's present version."""
        return Form.decode(self.setting("question") or "{}")

    @property
    def question(self) -> StudyQuestion:
        """The first question."""
        return self.form.first

    @property
    def annotators(self) -> tuple[str, ...]:
        """Who labels: names as they stand in the journal, pseudonyms where those were asked for."""
        with self.database.read() as connection:
            return creating.everybody(connection, "annotator")

    @property
    def people(self) -> tuple[str, ...]:
        """Everybody who has a link: annotators and adjudicators, also those who are set aside."""
        with self.database.read() as connection:
            return creating.everybody(connection)

    @property
    def adjudicators(self) -> tuple[str, ...]:
        """Who decides disagreements: those named for it, or all annotators; nobody who is set aside."""
        with self.database.read() as connection:
            return adjudicators_of(connection)

    @property
    def names(self) -> dict[str, str]:
        """Pseudonym → name, as far as the file of names is there."""
        return creating.read_names(self.folder)

    def aside(self) -> list[str]:
        """Return whose labels are set aside."""
        with self.database.read() as connection:
            rows = connection.all("SELECT name FROM annotator WHERE aside = 1 ORDER BY name")
        return [row["name"] for row in rows]

    def setting(self, name: str) -> str | None:
        """Return a setting that is kept in the study, such as the secret of a page's tokens."""
        with self.database.read() as connection:
            return connection.setting(name)

    def keep(self, **settings: str) -> None:
        """Save settings."""
        with self.database.write() as connection:
            connection.keep(**settings)

    def keep_new(self, name: str, value: str) -> str:
        """Save a setting unless it has a value already, from another process perhaps; return what it is."""
        with self.database.write() as connection:
            present = connection.setting(name)
            if not present:
                connection.keep(**{name: value})
            return present or value

    @contextmanager
    def saving(self, *, durable: bool = True, sound: bool = False) -> Iterator[Connection]:
        """Give a transaction: all that is saved in it, or nothing; see `Database.write`.

        With `sound` a study in which a check finds a problem is refused.
        """
        with self.database.write(durable=durable) as connection:
            # Not before it was this one's turn, so that what others gave meanwhile is past.
            connection.now = self.clock()
            if sound:
                require_sound(connection, self.folder)
            yield connection
            last = connection.one("SELECT seq, hash FROM journal ORDER BY seq DESC LIMIT 1")
        if durable and last is not None:
            keep_head(self.folder, last["seq"], last["hash"])

    @contextmanager
    def verified(self) -> Iterator[Connection]:
        """Give a connection that sees the study at one moment, once `check_study` finds no problem in it.

        Raises
        ------
        StudyError
            Of kind `damaged`, with the first problem.
        """
        with self.database.read() as connection:
            require_sound(connection, self.folder)
            yield connection

    @contextmanager
    def _seen_by(self, annotator: str) -> Iterator[Connection]:
        """Give a connection for what one annotator sees, refusing a name that is not of this study."""
        with self.database.read() as connection:
            creating.known(connection, annotator)
            yield connection

    def labels(self, column: str | None = None, *, words: bool = False) -> Labels:
        """Return the present labels, as `stratal.estimate(study.sample(), study.labels())` takes them.

        Of several questions those of the one named `column` (`study.form.columns`), or of the first. With
        `words` they are the annotators' answers, such as Pass, instead of what these count as: classes, to
        compare with a model's or a judge's.
        Raises `StudyError` of kind `damaged` where the journal or anything that belongs to it was changed.
        """
        with self.verified() as connection:
            return present_labels(connection, self.form, str(self.folder), column, words=words)

    def sample(self) -> Sample:
        """Return the sample with all rounds; raises `StudyError` for another file than was drawn."""
        with self.database.read() as connection:
            row = connection.one("SELECT number, file, digest FROM round ORDER BY number DESC LIMIT 1")
        path = creating.round_file(self.folder, row["number"], row["file"])
        if not path.is_file() or digest_of(path) != row["digest"]:
            what = f"{path}: is missing, or was changed after it was drawn"
            raise StudyError(what, kind="damaged", action="Go back to a backup (stratal study backup).")
        return Sample.read(path)

    @contextmanager
    def serving(self, address: str) -> Iterator[None]:
        """Hold the study for one server; a second one gets a `StudyError` of kind `served` that names it."""
        with serving(self.folder, self.setting("server") or ""):
            since = written_time(self.clock())
            try:
                self.keep(server=f"{address} (process {os.getpid()} on {gethostname()}, since {since})")
            except StudyError as error:
                # A disk may have room again, and the page says so; links that can never store an answer are
                # not given out.
                if error.kind not in ("disk-full", "locked"):
                    raise
            yield

    def hide_from_others(self) -> None:
        """Take the right to read the database from other accounts of this computer.

        From its secret all links can be computed. A study that was copied or unpacked may have other rights
        than a new one.
        """
        with suppress(OSError):  # a file of somebody else, or a file system without rights
            mode = self.database.path.stat().st_mode
            if mode & 0o007:
                self.database.path.chmod(mode & 0o770)

    def next_item(self, annotator: str) -> Item | None:
        """Return the item to label now, held for this annotator; the same one until it is answered.

        None where nothing is left for this annotator, or the interval is narrow enough (see `progress`).
        """
        return next(iter(self.next_items(annotator)), None)

    def next_items(self, annotator: str, *, ahead: int = 0) -> tuple[Item, ...]:
        """Return the item to label now and up to `ahead` more, held for this annotator; see `next_item`."""
        with self._seen_by(annotator) as connection:
            found = items.held(connection, annotator, 1 + ahead)
            enough = len(found) >= items.at_most(connection, ahead)
            if enough or not items.gets_items(connection, annotator):
                return tuple(shown_item(connection, annotator, item) for item in found)
        # Who holds what may be forgotten when the power fails; answers may not.
        with self.saving(durable=False) as connection:
            found = items.give_next(connection, annotator, ahead)
            return tuple(shown_item(connection, annotator, item) for item in found)

    def item(self, annotator: str, item: str) -> Item:
        """Return an item that this annotator was given before (to look back, or after a reload).

        Raises `StudyError` of kind `missing` for any other id.
        """
        with self._seen_by(annotator) as connection:
            number = items.given_item(connection, annotator, item)["item"]
            return shown_item(connection, annotator, number)

    def history(self, annotator: str, *, before: int | None = None, limit: int = 50) -> tuple[Answer, ...]:
        """Return this annotator's present answers, newest first; those with `seq` below `before`."""
        with self._seen_by(annotator) as connection:
            return items.history(connection, annotator, before, limit)

    def progress(self, annotator: str) -> Progress:
        """Return how far the study is, for one annotator."""
        with self._seen_by(annotator) as connection:
            return items.progress(connection, annotator, self.clock())

    def disagreements(self, *, limit: int = 50) -> tuple[Disagreement, ...]:
        """Return items on which annotators differ and nobody has decided, in the study's order."""
        with self.database.read() as connection:
            return items.disagreements(connection, limit)

    def assigned(self, annotator: str, *, limit: int = 20) -> tuple[int, tuple[Disagreement, ...]]:
        """Return how many open disagreements are assigned to an adjudicator, and the first of them.

        Of whoever has none left the first of the others'; of whoever does not decide none.
        """
        judges = self.adjudicators
        if annotator in judges:
            found = self.disagreements(limit=NEXT)
        else:
            found = ()
        mine = [entry for entry in found if items.assigned_to(entry, judges) == annotator]
        return len(mine), tuple(mine or found)[:limit]

    def act(
        self,
        annotator: str,
        action: Action,
        item: str | None = None,
        value: Any = None,
        *,
        ahead: int | None = None,
        **how: Unpack[How],
    ) -> Receipt:
        """Save what an annotator does to an item, whatever it is; `how`: `note`, `seconds`, `request`.

        The methods below are its actions, by their names. With `ahead` the next item and so many more are
        held for the annotator in the same transaction, since a second one would wait for everybody's again.
        """
        with self.saving() as connection:
            receipt = self._save(connection, annotator, action, item, value, **how)
            if ahead is not None and items.gets_items(connection, annotator):
                items.give_next(connection, annotator, ahead)
        if action in ("submit", "skip"):
            with suppress(StudyError):  # the answer is saved; whether it is enough can be looked at again
                look(self)
        return receipt

    def _save(
        self,
        connection: Connection,
        annotator: str,
        action: Action,
        item: str | None = None,
        value: Any = None,
        roles: frozenset[Role] | None = None,
        **how: Unpack[How],
    ) -> Receipt:
        """Save an action in a transaction; `roles` are those of whoever acts, if not the annotator's."""
        creating.known(connection, annotator)
        form = items.form_of(connection)
        entry = exchange.entry_of(self.id, form, annotator, action, item, value, **how)
        return items.save(connection, entry, roles)

    def submit(self, annotator: str, item: str, value: Any, **how: Unpack[How]) -> Receipt:
        """Save an answer; one that this annotator gave before is changed (`action` is then `change`).

        `value` is the name of a choice, a number of the scale, a class, or for a pair the column of the
        better side or `tie` (never left or right: the sides are shuffled); of several questions a mapping of
        each one's name to its answer. `how`: `note` (text), `seconds` that it took, and `request`.
        """
        return self.act(annotator, "submit", item, value, **how)

    def skip(self, annotator: str, item: str, **how: Unpack[How]) -> Receipt:
        """Save that this annotator cannot or will not say; another one may get the item. As `submit`."""
        return self.act(annotator, "skip", item, **how)

    def undo(self, annotator: str, *, request: str | None = None) -> Receipt:
        """Take back this annotator's last answer or skip; again and again, one further back each time.

        `item` of the receipt is what `next_item` gives next. Raises `StudyError` of kind `refused` where
        there is nothing to take back.
        """
        return self.act(annotator, "undo", request=request)

    def flag(self, annotator: str, item: str, *, on: bool = True, **how: Unpack[How]) -> Receipt:
        """Mark an item for the person who runs the study, or unmark it. `how`: `note`, `request`."""
        return self.act(annotator, "flag" if on else "unflag", item, **how)

    def adjudicate(self, annotator: str, item: str, value: Any, **how: Unpack[How]) -> Receipt:
        """Save a decision on an item, which then counts instead of the answers. `how`: `note`, `request`.

        A later one replaces it; None takes it back.
        """
        return self.act(annotator, "adjudicate", item, value, **how)

    def set_aside(self, annotator: str, *, reason: str = "") -> Receipt:
        """Leave all labels of an annotator out of everything, deleting none; others get the items."""
        with self.saving() as connection:
            return self._save(connection, annotator, "set-aside", roles=OPERATOR, note=reason)

    def take_back(self, annotator: str, *, reason: str = "") -> Receipt:
        """Take labels that were set aside back in."""
        with self.saving() as connection:
            return self._save(connection, annotator, "take-back", roles=OPERATOR, note=reason)

    def add_annotator(self, name: str) -> str:
        """Let one more person label; return the name that stands in the journal."""
        with self.saving() as connection:
            return creating.add_person(connection, self.folder, name)

    def set_rubric(self, text: str) -> int:
        """Change the rubric, how annotators judge; return the rubric's new version."""
        with self.saving() as connection:
            first, *others = items.form_of(connection).questions
            first = replace(first, rubric=text, rubric_version=first.rubric_version + 1)
            form = Form(questions=(first, *others))
            version = str(first.rubric_version)
            connection.keep(question=form.encode(), rubric_version=version)
            append_setting(connection, version, text, "rubric")
        return first.rubric_version

    def offline(
        self,
        annotator: str,
        *,
        items: int | None = None,
        write: Callable[[tuple[Item, ...]], None] | None = None,
    ) -> tuple[Item, ...]:
        """Return all free items, or so many, for a page in one file, kept for this annotator.

        `write` gets them before they are kept: if it fails, nothing is.
        """
        with self.saving(sound=True) as connection:
            numbers = exchange.item_numbers(connection, annotator, items)
            shown = tuple(shown_item(connection, annotator, number) for number in numbers)
            if write is not None:
                write(shown)
            return shown

    def take_in(
        self,
        text: str,
        *,
        source: str = "labels file",
        annotator: str | None = None,
        dry_run: bool = False,
    ) -> dict[str, Any]:
        """Save the actions of an offline page's labels file, all of them or none.

        The file must have the key of its annotator's page, unless `annotator` says whose it is. Returns
        how many actions were `saved` and how many had been (`repeated`), and annotator → number of
        `new_answers`, `changed_answers` and `withdrawn_answers`.
        """
        with self.saving(sound=True) as connection:
            found = exchange.take_in(connection, text, source, self.folder, annotator)
            if dry_run:
                connection.rollback()
        return found

    def page_key(self, annotator: str) -> str:
        """Return the key that the annotator's page in one file carries."""
        secret = self.setting(PAGE_FILE_SECRET) or self.keep_new(PAGE_FILE_SECRET, secrets.token_hex(32))
        return exchange.page_key(secret, self.id, annotator)

    def tasks(
        self,
        *,
        annotator: str | None = None,
        items: int | None = None,
        write: Callable[[list[Task]], None] | None = None,
    ) -> list[Task]:
        """Return the items that still need an answer, as annotation tools take them.

        With an annotator those are kept for that one, until the answers are taken in. `write` gets them
        before they are kept: if it fails, nothing is.
        """
        with self.saving(sound=True) as connection:
            token = self.sample().question.sample_token
            tasks = [
                replace(task, token=token) for task in exchange.study_tasks(connection, annotator, items)
            ]
            if write is not None:
                write(tasks)
            return tasks

    def take_in_answers(
        self,
        answers: ToolAnswers,
        *,
        annotator: Mapping[str, str] | str | None = None,
        same_rows: bool = False,
        dry_run: bool = False,
    ) -> ImportResult:
        """Save the answers given in another tool, all of it or nothing; see `stratal study import`.

        `annotator` says whose answers they are, or what the study calls each of the tool's annotators. With
        `dry_run` nothing is saved, and what would be is returned. If ids are row numbers, a table must state
        by the study's `sample_token` of which rows they are, unless they are declared the `same_rows`.
        """
        said = [entry for entry in answers.answers if entry.token is not None]
        if said and not same_rows:
            labels = Labels(
                ids=tuple(entry.id for entry in said),
                values=tuple(entry.value for entry in said),
                places=tuple(entry.place.rpartition(", ")[2] for entry in said),
                source=said[0].place.rpartition(", ")[0],
                tokens=tuple(str(entry.token) for entry in said),
            )
            refuse_other_rows(self.sample(), labels)
        with self.saving(sound=True) as connection:
            found = exchange.take_in_answers(connection, answers, annotator, self.folder)
            if dry_run:
                connection.rollback()
        if not dry_run:
            with suppress(StudyError):
                look(self)
        return replace(found, applied=not dry_run)


def estimate_options(study: Study, column: str | None = None) -> dict[str, Any]:
    """Return what a question declares of the outcome as keywords of `estimate`: its bounds or estimand."""
    form = study.form
    name = column or next(iter(form.columns))
    question, part = form.columns[name]
    if part:  # 1 or 0
        return {}
    if question.when and question.counted:
        return {"estimand": f"ratio_of_means:{name},{name}_{ASKED}"}
    if not question.counted:
        return {}
    yes_or_no = question.bounds == (0.0, 1.0) and len(question.choices) == 2
    if yes_or_no or question.bounds is None:
        return {}
    return {"bounds": question.bounds}


def sample_for_column(study: Study, column: str | None = None) -> Sample:
    """Return the study's sample with what a column of its form declares: classes, or numbers."""
    sample = study.sample()
    form = study.form
    question, part = form.columns[column or next(iter(form.columns))]
    if part or question.counted:
        return replace(sample, question=sample.question.refine(predicted=False))
    if sample.question.answer is None:
        return sample
    return replace(sample, question=sample.question.refine(predicted=True))


def estimate_study(study: Study, column: str | None = None, **options: Any) -> Estimate:
    """Estimate from the present labels of a study.

    Parameters
    ----------
    study : Study
    column : str, optional
        Which of several questions, by its name; the first unless given.
    **options
        As of `stratal.estimate`; bounds and classes are known from the question unless given.

    Raises
    ------
    LabelError
        If there is no label yet, or labels are classes and the sample holds no model's answers.
    """
    sample = sample_for_column(study, column)
    known: dict[str, Any] = {**estimate_options(study, column), **options}
    estimand = as_estimand(known.get("estimand") or sample.question.estimand)
    columns = estimand.label_columns(sample)
    labels = {name: study.labels(name) for name in columns} if columns else study.labels(column)
    found: Estimate = estimate(sample, labels, **known)
    return found


def anytime_interval(
    study: Study, confidence_level: float = 0.95, column: str | None = None
) -> ConfidenceInterval:
    """Return the interval that holds at every moment at once, so that one may look at any time and stop.

    By betting on the labels in the order in which they came (`stratal.intervals.betting`). Nothing is
    assumed but the random order of the items, and that skips are as frequent in every stratum; proxies are
    not used, so that it is wider than the estimate's own. Of several questions that of the first, or of the
    one named `column`.

    Raises
    ------
    InputError
        For designs with unequal probabilities, and outcomes without bounds.
    """
    sample = sample_for_column(study, column)
    if not sample.design.rounds_by_labels:
        what = "an interval that holds at every moment needs a simple random or stratified sample"
        action = "Look at the estimate once, when all labels are there: stratal.estimate."
        raise InputError(what, given=f"design '{sample.design.kind}'", action=action)
    options = estimate_options(study, column)
    form = study.form
    question, part = form.columns[column or next(iter(form.columns))]
    if "estimand" in options or (question.counted and question.bounds is None):
        what = "an interval that holds at every moment needs a number with bounds, asked for every item"
        raise InputError(what, given=question.name, allowed="such as a choice that counts as 0 or 1")
    with study.verified() as connection:
        rows, answered = arrivals(connection, sample)
        labels = present_labels(connection, form, str(study.folder), column)
    known = outcomes(sample, labels)
    z = np.full(sample.size, np.nan)
    z[known.labelled] = known.z
    low, high = (not part and question.bounds) or (0.0, 1.0)
    answered &= ~np.isnan(z[rows])  # an answer that counts as none is nonresponse
    unit = (z[rows[answered]] - low) / (high - low)
    # The units drawn by round and stratum (R, H).
    drawn = np.zeros((int(sample.round.max(initial=1)), len(sample.summary.sizes)), np.int64)
    np.add.at(drawn, (sample.round - 1, sample.stratum), 1)
    order = random_order(sample.stratum[rows], answered, sample.summary.sizes, drawn, sample.round[rows] - 1)
    below, above = sequence_interval(unit, order, *tail_shares(confidence_level, "two-sided"))
    if below > above:
        what = "labels changed over time by more than chance: no value fits every moment so far"
        raise InputError(what, action="See who changed (drift), or look at the estimate once.")
    return ConfidenceInterval(
        low=low + (high - low) * below,
        high=low + (high - low) * above,
        confidence_level=confidence_level,
        method="betting-anytime",
    )


def planned_look(study: Study, confidence_level: float = 0.95) -> dict[str, Any] | None:
    """Return the last planned look that is due, with its estimate and interval; None before the first.

    Look k is at the first k / K of the items in the order in which they were answered or skipped; where there
    are rounds, at the end of round k. What comes later does not change it, however often one asks.
    """
    sample = sample_for_column(study)
    assert sample.looks is not None
    planned = PlannedLooks.parse(sample.looks)
    with study.verified() as connection:
        rows, _ = arrivals(connection, sample)
        labels = present_labels(connection, study.form, str(study.folder))
    if sample.round.max(initial=1) > 1:
        ends = np.cumsum(np.bincount(sample.round)[1:])[: planned.number]
    else:
        ends = np.ceil(np.arange(1, planned.number + 1) * sample.size / planned.number).astype(np.int64)
    due = int(np.searchsorted(ends, len(rows), "right"))
    if due == 0:
        return None
    seen = set(id_texts(sample.ids[rows[: ends[due - 1]]]))
    kept = labels.only([row for row, unit in enumerate(labels.ids) if unit in seen])
    found = estimate(sample, kept, look=due, **estimate_options(study))
    return {"look": due, "of": planned.number, "estimate": found.to_dict(confidence_level)}


def look(study: Study, confidence_level: float = 0.95) -> bool:
    """Look whether the interval is as narrow as was asked for, and keep the answer; True if it is.

    It is looked at now and then, since an interval that holds at every moment holds at those too.
    """
    with study.database.read() as connection:
        wanted, rounds, done = _looked_at(connection)
        if not wanted:
            return False
        if connection.setting("enough") == "yes":
            return True
        if done < max(1, int(connection.setting("next_look") or 0)):
            return False
    try:
        enough = anytime_interval(study, confidence_level).width / 2 <= float(wanted)
    except (InputError, LabelError):
        enough = False
    with study.database.write() as connection:
        # Another half-width or another round, which came meanwhile, needs another look.
        if _looked_at(connection)[:2] != (wanted, rounds):
            return False
        next_look = max(done + 1, math.ceil(done * LOOKS))
        connection.keep(enough="yes" if enough else "no", next_look=str(next_look))
    return enough


def _looked_at(connection: Connection) -> tuple[str | None, int, int]:
    """Return what a look depends on: the half-width that is wanted, the number of rounds and of answers."""
    (rounds,) = connection.one("SELECT count(*) FROM round")
    (done,) = connection.one("SELECT done FROM tally")
    return connection.setting("half_width"), int(rounds), int(done)


def until(study: Study, half_width: float | None) -> bool:
    """Ask for another half-width at which labelling ends, or for none; return whether it is reached."""
    kept = width_text(half_width)
    with study.saving() as connection:
        connection.keep(half_width=kept, enough="no", next_look="0")
        append_setting(connection, "half_width", kept)
    return look(study)


def width_text(half_width: float | None) -> str:
    """Return a half-width as the study keeps it, empty for none."""
    if half_width is None:
        return ""
    if not (isinstance(half_width, int | float) and math.isfinite(half_width) and half_width > 0):
        raise not_positive("half_width", half_width)
    return repr(float(half_width))


def present_labels(
    connection: Connection,
    form: Form,
    source: str,
    column: str | None = None,
    *,
    requested: bool = False,
    words: bool = False,
) -> Labels:
    """Return the present labels, skips without a value; a decision stands for the answers of its item.

    Labels that were set aside are left out. An answer that counts as none has no value; a question that was
    not asked counts as `Form.outcome` says, or with `requested` has none.
    """
    name = next(iter(form.columns)) if column is None else column
    if name not in form.columns:
        raise InputError("the study asks no such question", given=repr(name), allowed=", ".join(form.columns))

    def value(kept: str | None) -> Any:
        answer = form.said(name, kept)
        if requested and answer is None:
            counted = None
        else:
            counted = form.outcome(name, kept)
        return answer if words and counted is not None else counted

    def labels_of(rows: list[Any], replaced: Labels | None = None) -> Labels:
        return Labels(
            ids=tuple(row["id"] for row in rows),
            values=tuple(value(row["value"]) for row in rows),
            annotators=tuple(row["annotator"] for row in rows),
            places=tuple(f"journal line {row['seq']}" for row in rows),
            source=source,
            replaced=replaced,
        )

    decisions = connection.all(
        "SELECT id, ? AS annotator, value, seq FROM item JOIN journal ON seq = decision", ADJUDICATED
    )
    answers = connection.all(
        "SELECT id, annotator, value, seq, decision FROM answer JOIN item USING (item) "
        "JOIN annotator ON name = annotator WHERE aside = 0 ORDER BY seq"
    )
    replaced = [row for row in answers if row["decision"] is not None and row["value"] is not None]
    kept = [row for row in answers if row["decision"] is None]
    return labels_of([*decisions, *kept], labels_of(replaced) if decisions else None)


def arrivals(connection: Connection, sample: Sample) -> tuple[IntArray, BoolArray]:
    """Return the sample's rows (m,) in the order in which they were finished, and which have a label.

    An item is finished once as many people as are to label it have answered or skipped it; until then it is
    left out, for a second person's answers to the first items alone would change these and no others. Later
    answers and changes leave it in its place. Rounds follow each other. What holds at every moment must look
    at labels in an order that does not change afterwards; items are given out at random, so that it says
    nothing of the outcomes.
    """
    rows = connection.all(
        "SELECT id, labelled FROM (SELECT item.item AS item, id, round, copies, decision, "
        "answers > 0 OR decision IS NOT NULL AS labelled, min(journal.seq) AS first, "
        "count(*) OVER (PARTITION BY item.item) AS people, row_number() OVER ("
        "PARTITION BY item.item ORDER BY status = 'skipped', min(journal.seq)) AS place "
        "FROM journal JOIN answer USING (item, annotator) JOIN annotator ON annotator = name "
        "JOIN item USING (item) WHERE aside = 0 AND action IN ('submit', 'change', 'skip') "
        "AND (action = 'skip') = (status = 'skipped') GROUP BY item.item, annotator) "
        "WHERE place <= copies AND (people >= copies OR decision IS NOT NULL) "
        "GROUP BY item ORDER BY round, max(first)"
    )
    place = {text: row for row, text in enumerate(id_texts(sample.ids))}
    order = np.array([place[row["id"]] for row in rows], dtype=np.int64)
    return order, np.array([row["labelled"] for row in rows], dtype=bool)


# Times as many units as the interval seems to need.
MORE = 1.5


def grow(study: Study, additional: int, *, population: Population, by_labels: bool | None = None) -> Sample:
    """Draw more items of the same draw, and give them to the annotators.

    Parameters
    ----------
    study : Study
    additional : int
        Units to add.
    population : Population
        The one that the sample was drawn from.
    by_labels : bool, optional
        Whether the labels so far say which strata get them (`stratal.next_round`), which helps most but
        biases the estimate a little; if not, the design stays as it is and only its budget grows. By labels
        by default, where the design is simple random or stratified and there are labels.

    Returns
    -------
    Sample
        With all rounds.

    Raises
    ------
    InputError
        For a population that is not the sample's, and a design that cannot be extended.
    BudgetError
        If fewer units are left.
    """
    sample = study.sample()
    labels = study.labels()
    selection = selection_so_far(study, population, additional)
    if selection is not None:
        if not selection.done:
            add_round(study, selection.sample)
        return selection.sample
    if by_labels is None:
        by_labels = sample.design.rounds_by_labels and labels.answered > 0
    known = (labels,) if by_labels else ()
    options: dict[str, Any] = {}
    if by_labels:
        compares = sample_for_column(study).question.compares
        options = estimate_options(study) | {"predicted": compares}
    larger = next_round(sample, *known, additional=additional, population=population, **options)
    add_round(study, larger)
    return larger


def selection_so_far(study: Study, population: Population, additional: int | None = None) -> Selection | None:
    """Return how models stand by the labels so far, with the next round; None where no model is selected."""
    sample = study.sample()
    if not isinstance(sample.design, Disagreements):
        return None
    return Selection.resume(sample, population).update(study.labels(), additional)


def units_needed(study: Study) -> int:
    """Return how many more units the study needs until its interval is as narrow as was asked for.

    The interval that holds at every moment narrows about as 1/√n, more slowly over several rounds; half as
    many again are drawn, which costs no label, since labelling ends as soon as it is narrow enough.

    Raises
    ------
    InputError
        If no half-width was asked for, and for designs that have no such interval.
    LabelError
        If there is no label yet.
    """
    sample = study.sample()
    wanted = study.setting("half_width")
    if isinstance(sample.design, Disagreements):
        return usual_round(sample.size)
    if not wanted:
        what = "this study has no half-width to extend it to"
        raise InputError(what, allowed="--additional N, or --until WIDTH first")
    if study.setting("enough") == "yes":
        return 0
    ratio = anytime_interval(study).width / 2 / float(wanted)
    total = math.ceil(MORE * sample.size * max(ratio, 1.0) ** 2)
    return min(total, sample.population_size) - sample.size


def add_round(study: Study, larger: Sample) -> int:
    """Add a sample that extends the study's own; return how many items are new.

    Raises
    ------
    InputError
        If it is another draw: another seed, or units that are no longer there.
    """
    sample = study.sample()
    require_same_draw(sample, larger)
    with study.saving() as connection:
        added = add_items(connection, study.folder, larger, last_round(larger))
        connection.keep(enough="no", next_look="0")
    return added
