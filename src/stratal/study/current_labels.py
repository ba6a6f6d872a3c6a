"""The labels of a study as they are now, and the order in which its items were finished."""

from __future__ import annotations

from typing import Any

import numpy as np

from stratal.arrays import BoolArray, IntArray
from stratal.designs import Sample
from stratal.errors import InputError
from stratal.labels.labels import ADJUDICATED, Labels
from stratal.randomness import id_texts
from stratal.study.database import Connection
from stratal.study.question import Form


def present_labels(
    connection: Connection,
    form: Form,
    source: str,
    column: str | None = None,
    *,
    requested: bool = False,
    words: bool = False,
) -> Labels:
    """Return the present labels, skips without a value; a decision replaces the answers to its item.

    Labels that were set aside are left out. An answer that counts as none has no value. A question that was
    not asked has the value of `Form.outcome`, or none with `requested`.
    """
    if column is None:
        name = next(iter(form.columns))
    else:
        name = column
    if name not in form.columns:
        raise InputError("the study has no such question", given=repr(name), allowed=", ".join(form.columns))

    def value(stored: str | None) -> Any:
        answer = form.answer_text(name, stored)
        if requested and answer is None:
            return None
        outcome = form.outcome(name, stored)
        if words and outcome is not None:
            return answer
        return outcome

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
    undecided = [row for row in answers if row["decision"] is None]
    if not decisions:
        return labels_of(undecided)
    return labels_of([*decisions, *undecided], labels_of(replaced))


def completion_order(connection: Connection, sample: Sample) -> tuple[IntArray, BoolArray]:
    """Return the sample's rows (m,) in the order in which they were finished, and which have a label.

    An item is finished once the required number of people have answered or skipped it; until then it is left
    out, because a second person's answers to the first items alone would change only these. Later answers
    and changes do not move it. Rounds follow each other. An anytime-valid interval requires an order that
    does not change afterwards; since items are assigned at random, the order is independent of the outcomes.
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
