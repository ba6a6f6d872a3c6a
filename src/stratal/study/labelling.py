"""What annotators said, as labels that an estimate takes."""

from __future__ import annotations

import sqlite3

import numpy as np

from stratal.arrays import BoolArray, IntArray
from stratal.designs import Sample
from stratal.labels import Labels
from stratal.labels.labels import ADJUDICATED
from stratal.randomness import id_texts
from stratal.study.question import Question


def present_labels(connection: sqlite3.Connection, question: Question, source: str) -> Labels:
    """Return the present labels, skips without a value; a decision stands for the answers of its item.

    Labels that were set aside are left out.

    Examples
    --------
    >>> present_labels.__name__
    'present_labels'
    """
    decided = connection.execute(
        "SELECT item.id AS id, journal.value AS value, decision AS seq FROM item "
        "JOIN journal ON seq = decision WHERE decision IS NOT NULL"
    ).fetchall()
    said = connection.execute(
        "SELECT item.id AS id, answer.annotator AS who, status, answer.value AS value, seq, "
        "decision IS NOT NULL AS decided FROM answer "
        "JOIN item USING (item) JOIN annotator ON name = answer.annotator "
        "WHERE aside = 0 ORDER BY seq"
    ).fetchall()
    before = [row for row in said if row["decided"] and row["status"] == "submitted"]
    said = [row for row in said if not row["decided"]]
    values = [question.outcome(row["value"]) if row["status"] == "submitted" else None for row in said]
    return Labels(
        ids=tuple(row["id"] for row in (*decided, *said)),
        values=(*(question.outcome(row["value"]) for row in decided), *values),
        annotators=(*(ADJUDICATED for _ in decided), *(row["who"] for row in said)),
        places=tuple(f"journal line {row['seq']}" for row in (*decided, *said)),
        source=source,
        replaced=None
        if not decided
        else Labels(
            ids=tuple(row["id"] for row in before),
            values=tuple(question.outcome(row["value"]) for row in before),
            annotators=tuple(row["who"] for row in before),
            source=source,
        ),
    )


def arrivals(connection: sqlite3.Connection, sample: Sample) -> tuple[IntArray, BoolArray]:
    """Return the sample's rows (m,) in the order in which they were first answered, and which have a label.

    Rows that were only skipped stand where they were first skipped; those that nobody has seen to are left
    out. Rounds follow each other. What holds at every moment must look at labels in an order that does not
    change afterwards; items are given out at random, so that it says nothing of the outcomes.

    Examples
    --------
    >>> arrivals.__name__
    'arrivals'
    """
    rows = connection.execute(_FIRST_ANSWERS).fetchall()
    position = {text: row for row, text in enumerate(id_texts(sample.ids))}
    events = sorted(
        (int(sample.round[place]), row["said"] if row["labelled"] else row["skipped"], place, row["labelled"])
        for row in rows
        for place in [position[row["id"]]]
    )
    order = np.array([place for _, _, place, _ in events], dtype=np.int64)
    return order, np.array([labelled for *_, labelled in events], dtype=bool)


_FIRST_ANSWERS = """
SELECT item.id AS id, answers > 0 OR decision IS NOT NULL AS labelled,
    min(CASE WHEN action <> 'skip' THEN seq END) AS said,
    min(CASE WHEN action = 'skip' THEN seq END) AS skipped
FROM journal JOIN item USING (item) JOIN annotator ON annotator = name
WHERE aside = 0 AND action IN ('submit', 'change', 'skip') AND EXISTS (
    SELECT 1 FROM answer JOIN annotator ON annotator = name WHERE answer.item = item.item AND aside = 0
)
GROUP BY journal.item
"""
