"""The current labels of a study, and the order in which its items were finished."""

from __future__ import annotations

from typing import Any

import numpy as np

from stratal.arrays import BoolArray, IntArray
from stratal.designs import Sample
from stratal.labels.labels import ADJUDICATED, Labels
from stratal.randomness import id_texts
from stratal.study.database import Connection
from stratal.study.question import Form


def current_labels(
    connection: Connection,
    form: Form,
    source: str,
    column: str | None = None,
    *,
    only_answered: bool = False,
    as_text: bool = False,
) -> Labels:
    """Return the current labels. An adjudicator's decision replaces the answers to its item.

    Labels of people who were set aside are excluded. A skipped item has no value, and neither has an answer
    that means "no label".

    Parameters
    ----------
    connection : Connection
    form : Form
    source : str
        Name of the source in errors.
    column : str, optional
        The question; by default the first.
    only_answered : bool
        Whether a question that a person did not see, because of an earlier answer, has no value. Otherwise,
        a number and a choice have the value 0 (`Form.outcome`).
    as_text : bool
        Whether the values are the texts of the answers instead of outcomes. An answer without an outcome has
        no text.
    """
    name = form.column_name(column)

    def label_value(stored_answers: str | None) -> Any:
        text = form.answer_text(name, stored_answers)
        if only_answered and text is None:
            return None
        outcome = form.outcome(name, stored_answers)
        if as_text and outcome is not None:
            return text
        return outcome

    def labels_of_rows(rows: list[Any], replaced: Labels | None = None) -> Labels:
        return Labels(
            ids=tuple(row["id"] for row in rows),
            values=tuple(label_value(row["value"]) for row in rows),
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
    undecided = [row for row in answers if row["decision"] is None]
    if not decisions:
        return labels_of_rows(undecided)
    replaced_answers = [row for row in answers if row["decision"] is not None and row["value"] is not None]
    return labels_of_rows([*decisions, *undecided], labels_of_rows(replaced_answers))


def completion_order(connection: Connection, sample: Sample) -> tuple[IntArray, BoolArray]:
    """Return the finished units of a sample in their order, as row numbers (m,), and the mask (m,) of labels.

    An item is finished when the required number of people (`copies`) have answered or skipped it. Unfinished
    items are excluded, because a further person's answers would change them later. Later answers do not
    change the order. Items of a later round follow those of the earlier rounds. An anytime-valid interval
    requires an order that does not change afterwards. Since items are assigned at random, the order is
    independent of the outcomes.
    """
    # The inner query has one row per item and annotator, with the line (`first`) of the first action of the
    # same kind as the current answer: answers and skips are different kinds. Answers rank before skips. The
    # item is finished by the last of the first `copies` annotators.
    rows = connection.all(
        "SELECT id, labelled FROM (SELECT item.item AS item, id, round, copies, decision, "
        "answers > 0 OR decision IS NOT NULL AS labelled, min(journal.seq) AS first, "
        "count(*) OVER (PARTITION BY item.item) AS people, row_number() OVER ("
        "PARTITION BY item.item ORDER BY status = 'skipped', min(journal.seq)) AS answer_rank "
        "FROM journal JOIN answer USING (item, annotator) JOIN annotator ON annotator = name "
        "JOIN item USING (item) WHERE aside = 0 AND action IN ('submit', 'change', 'skip') "
        "AND (action = 'skip') = (status = 'skipped') GROUP BY item.item, annotator) "
        "WHERE answer_rank <= copies AND (people >= copies OR decision IS NOT NULL) "
        "GROUP BY item ORDER BY round, max(first)"
    )
    row_by_id = {id_text: row for row, id_text in enumerate(id_texts(sample.ids))}
    order = np.array([row_by_id[row["id"]] for row in rows], dtype=np.int64)
    return order, np.array([row["labelled"] for row in rows], dtype=bool)
