"""A new version of the model on labels that are there, in words and a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stratal.report.text import Page, Table, level_text

MOST_IDS = 20


def new_version_page(new: Mapping[str, Any]) -> Page:
    """Return what is said of a new version (`NewVersion.to_dict`).

    Examples
    --------
    >>> span = {"estimate": 0.5, "lowest": 0.5, "highest": 0.5, "confidence_interval": [0.4, 0.6]}
    >>> new = {"units": 20, "labelled": 20, "missing": 0, "same": 15, "changed": 5, "blank": 0, "known": 20,
    ...        "complete": True, "confidence_level": 0.95, "old": span, "new": span, "difference": span,
    ...        "needs_labels": [], "needs_answers": []}
    >>> new_version_page(new).lines[1]
    'The labels that you have settle the new version too: nothing has to be labelled.'
    """
    return Page(
        lines=_sentences(new),
        tables=[
            Table(
                title="Old and new",
                header=("", "estimate", "at worst", "at best", level_text(new["confidence_level"])),
                rows=[
                    [
                        name,
                        *(
                            new[key][part]
                            for part in ("estimate", "lowest", "highest", "confidence_interval")
                        ),
                    ]
                    for name, key in (("old", "old"), ("new", "new"), ("new minus old", "difference"))
                ],
            )
        ],
        notes=_needs(new),
    )


def _sentences(new: Mapping[str, Any]) -> list[str]:
    blank = f", of these {new['blank']:,} none at all (blank)" if new["blank"] else ""
    lines = [
        f"Of {new['units']:,} drawn units that the new version answered, {new['same']:,} have the same "
        f"answer and {new['changed']:,} another{blank}."
    ]
    if new["missing"]:
        lines.append(
            f"{new['missing']:,} drawn units do not occur among the new answers: what the new version says "
            "of them is not known."
        )
    if new["complete"]:
        lines.append("The labels that you have settle the new version too: nothing has to be labelled.")
        return lines
    unknown = len(new["needs_labels"]) + len(new["needs_answers"])
    lines.append(
        f"Of the {new['labelled']:,} labelled units, on which old, new and difference all rest, {unknown:,} "
        "have no known new outcome. At worst and at best these are all as bad or as good as they can be; the "
        "interval holds for both, and for everything between."
    )
    return lines


def _needs(new: Mapping[str, Any]) -> list[str]:
    found = []
    for title, wanted in (("labels", new["needs_labels"]), ("new answers", new["needs_answers"])):
        more = f" and {len(wanted) - MOST_IDS:,} more" if len(wanted) > MOST_IDS else ""
        found += [f"Need {title}: {', '.join(wanted[:MOST_IDS])}{more}."] if wanted else []
    return found
