"""`Study`: an open study folder, as the page, the notebook and the commands use it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from stratal.labels.exchange.exchange import Answers, Task
from stratal.study import answers, assignment, exchange, offline, showing, team
from stratal.study.exchange import Taken
from stratal.study.faults import REFUSED, StudyError
from stratal.study.folder import StudyFolder
from stratal.study.journal import Entry, append_setting, keep_setting
from stratal.study.records import (
    ADJUDICATE,
    FLAG,
    NOTE,
    RUBRIC,
    SET_ASIDE,
    SKIP,
    SUBMIT,
    TAKE_BACK,
    UNDO,
    UNFLAG,
    Answer,
    Disagreement,
    Item,
    Progress,
    Receipt,
)  # fmt: skip
from stratal.study.soundness import require_sound


class _NotYetError(Exception):
    """What was only to be looked at is taken back."""


class Study(StudyFolder):
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

    Examples
    --------
    >>> Study.__name__
    'Study'
    """

    def next_item(self, annotator: str) -> Item | None:
        """Return the item to label now, held for this annotator; the same one until it is answered.

        None where nothing is left for this annotator, or the interval is narrow enough (see `progress`).
        """
        self.known(annotator)
        with self.database.read() as connection:
            item = assignment.held(connection, annotator)
            if item is not None:
                row = showing.item_row(connection, item)
                return showing.shown_item(connection, self.question, annotator, row)
            if not team.gets_items(connection, annotator):
                return None
        # Who holds what may be forgotten when the power fails; what was said may not.
        with self.saving(durable=False) as transaction:
            item = assignment.give_next(transaction, annotator)
            if item is None:
                return None
            row = showing.item_row(transaction.connection, item)
            return showing.shown_item(transaction.connection, self.question, annotator, row)

    def item(self, annotator: str, item: str) -> Item:
        """Return an item that this annotator was given before (to look back, or after a reload).

        Raises `StudyError` of kind `missing` for any other id.
        """
        self.known(annotator)
        with self.database.read() as connection:
            row = showing.given_row(connection, annotator, item)
            return showing.shown_item(connection, self.question, annotator, row)

    def history(self, annotator: str, *, before: int | None = None, limit: int = 50) -> tuple[Answer, ...]:
        """Return this annotator's present answers, newest first; those with `seq` below `before`."""
        self.known(annotator)
        with self.database.read() as connection:
            return showing.history(connection, annotator, before, limit)

    def submit(
        self,
        annotator: str,
        item: str,
        value: Any,
        *,
        note: str = "",
        seconds: float | None = None,
        request: str | None = None,
    ) -> Receipt:
        """Save an answer; one that this annotator gave before is changed (`action` is then `change`).

        `value` is the name of a choice, a number of the scale, a class, or for a pair the column of the
        better side or `tie` (never left or right: the sides are shuffled).
        """
        question = self.question
        order = showing.sides(question, item, annotator, self.id)
        entry = Entry(
            annotator=self.known(annotator), action=SUBMIT, id=item, value=question.answer(value), note=note,
            seconds=seconds, shown=None if order is None else "|".join(order), request=request,
        )  # fmt: skip
        return self._answer(entry)

    def skip(
        self,
        annotator: str,
        item: str,
        *,
        note: str = "",
        seconds: float | None = None,
        request: str | None = None,
    ) -> Receipt:
        """Save that this annotator cannot or will not say; another one may get the item."""
        entry = Entry(
            annotator=self.known(annotator),
            action=SKIP,
            id=item,
            note=note,
            seconds=seconds,
            request=request,
        )
        return self._answer(entry)

    def undo(self, annotator: str, *, request: str | None = None) -> Receipt:
        """Take back this annotator's last answer or skip; again and again, one further back each time.

        `item` of the receipt is what `next_item` gives next. Raises `StudyError` of kind `refused` where
        there is nothing to take back.
        """
        entry = Entry(annotator=self.known(annotator), action=UNDO, request=request)
        with self.saving() as transaction:
            return answers.undo_last(transaction, entry)

    def flag(
        self, annotator: str, item: str, *, on: bool = True, note: str = "", request: str | None = None
    ) -> Receipt:
        """Mark an item for whoever runs the study, or unmark it."""
        return self._mark(annotator, FLAG if on else UNFLAG, item, note, request)

    def note(self, annotator: str, item: str, text: str, *, request: str | None = None) -> Receipt:
        """Save a note on an item without answering it."""
        return self._mark(annotator, NOTE, item, text, request)

    def progress(self, annotator: str) -> Progress:
        """Return how far the study is, for one annotator."""
        self.known(annotator)
        with self.database.read() as connection:
            return showing.progress(connection, annotator, self.clock())

    def disagreements(self, *, limit: int = 50, decided: bool = False) -> tuple[Disagreement, ...]:
        """Return items of which annotators say different things, in the study's order.

        Those that are decided too, if asked for.
        """
        with self.database.read() as connection:
            return showing.disagreements(connection, limit, decided=decided)

    def adjudicate(
        self, annotator: str, item: str, value: Any, *, note: str = "", request: str | None = None
    ) -> Receipt:
        """Save a decision on an item, which then counts instead of the answers.

        A later one replaces it; None takes it back.
        """
        if self.known(annotator) not in self.adjudicators:
            raise StudyError(
                f"{annotator!r} does not decide disagreements",
                kind=REFUSED,
                allowed=", ".join(self.adjudicators),
            )
        decided = None if value is None else self.question.answer(value)
        entry = Entry(
            annotator=annotator, action=ADJUDICATE, id=item, value=decided, note=note, request=request
        )
        with self.saving() as transaction:
            return answers.save_decision(transaction, entry)

    def set_aside(self, annotator: str, *, reason: str = "") -> Receipt:
        """Leave all labels of an annotator out of everything, deleting none; others get the items."""
        entry = Entry(annotator=self.known(annotator), action=SET_ASIDE, note=reason)
        with self.saving() as transaction:
            return answers.set_standing(transaction, entry, aside=True)

    def take_back(self, annotator: str, *, reason: str = "") -> Receipt:
        """Take labels that were set aside back in."""
        entry = Entry(annotator=self.known(annotator), action=TAKE_BACK, note=reason)
        with self.saving() as transaction:
            return answers.set_standing(transaction, entry, aside=False)

    def add_annotator(self, name: str) -> str:
        """Let one more person label; return the name that stands in the journal."""
        with self.saving() as transaction:
            return team.add_person(transaction, self.folder, name)

    def set_rubric(self, text: str) -> int:
        """Change how annotators are told to judge; return the rubric's new version."""
        question = self.question.with_rubric(text)
        with self.saving() as transaction:
            keep_setting(
                transaction.connection, "question", json.dumps(question.to_dict(), ensure_ascii=False)
            )
            keep_setting(transaction.connection, "rubric_version", str(question.rubric_version))
            append_setting(transaction, str(question.rubric_version), text, RUBRIC)
        return question.rubric_version

    def offline(self, annotator: str, *, items: int | None = None) -> dict[str, Any]:
        """Return what a page in one file needs, and keep its items for this annotator.

        See `stratal.study.offline` for what is in it.
        """
        self.known(annotator)
        with self.saving() as transaction:
            require_sound(transaction.connection, self.folder)
            return offline.package(transaction, self.question, annotator, items)

    def take_in(self, text: str, *, source: str = "labels file", dry_run: bool = False) -> dict[str, int]:
        """Save the actions of an offline page's labels file, all of them or none: `{"saved", "repeated"}`."""
        found: dict[str, int] = {}
        with suppress(_NotYetError), self.saving() as transaction:
            require_sound(transaction.connection, self.folder)
            found |= offline.take_in(transaction, self.question, text, source)
            if dry_run:
                raise _NotYetError
        return found

    def tasks(self, *, annotator: str | None = None, items: int | None = None) -> list[Task]:
        """Return the items that still need an answer, as annotation tools take them.

        With an annotator those are kept for that one, until the answers are taken in.
        """
        with self.saving() as transaction:
            require_sound(transaction.connection, self.folder)
            return exchange.study_tasks(transaction, self.question, annotator, items)

    def take_in_answers(
        self, answers: Answers, *, annotator: Mapping[str, str] | str | None = None, dry_run: bool = False
    ) -> Taken:
        """Save what annotators said in another tool, all of it or nothing; see `stratal import`.

        `annotator` says whose answers they are, or what the study calls each of the tool's annotators. With
        `dry_run` nothing is saved, and what would be is returned.
        """
        question = self.question
        found: list[Taken] = []
        with suppress(_NotYetError), self.saving() as transaction:
            require_sound(transaction.connection, self.folder)
            found.append(exchange.take_in_answers(transaction, question, answers, annotator, self.folder))
            if dry_run:
                raise _NotYetError
        if not dry_run:
            self._look()
        return replace(found[0], applied=not dry_run)

    def _answer(self, entry: Entry) -> Receipt:
        with self.saving() as transaction:
            receipt = answers.save_answer(transaction, entry)
        self._look()
        return receipt

    def _look(self) -> None:
        """Look whether the interval is narrow enough, where that was asked for."""
        if self.setting("half_width"):
            from stratal.study.interim import look

            # The answers are saved; whether they are enough can be looked at again.
            with suppress(StudyError):
                look(self)

    def _mark(self, annotator: str, action: str, item: str, note: str, request: str | None) -> Receipt:
        entry = Entry(annotator=self.known(annotator), action=action, id=item, note=note, request=request)
        with self.saving() as transaction:
            return answers.save_mark(transaction, entry)
