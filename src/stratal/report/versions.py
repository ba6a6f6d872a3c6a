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
    >>> new = {"units": 20, "missing": 0, "same": 15, "changed": 5, "known": 20, "complete": True,
    ...        "confidence_level": 0.95, "old": span, "new": span, "difference": span, "needs_labels": []}
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
    lines = [
        f"Of {new['units']:,} drawn units that the new version answered, {new['same']:,} have the same "
        f"answer "
        f"and {new['changed']:,} another."
    ]
    if new["missing"]:
        lines.append(
            f"{new['missing']:,} drawn units have no answer of the new version; the others of their stratum "
            "stand for them."
        )
    if new["complete"]:
        lines.append("The labels that you have settle the new version too: nothing has to be labelled.")
        return lines
    lines.append(
        f"The outcome of {len(new['needs_labels']):,} changed answers is not known. At worst and at best "
        f"they are "
        "all as bad or as good as they can be; the interval holds for both, and for everything between."
    )
    return lines


def _needs(new: Mapping[str, Any]) -> list[str]:
    wanted = new["needs_labels"]
    if not wanted:
        return []
    more = f" and {len(wanted) - MOST_IDS:,} more" if len(wanted) > MOST_IDS else ""
    return [f"Need labels: {', '.join(wanted[:MOST_IDS])}{more}."]
