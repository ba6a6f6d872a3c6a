"""A page in one file: items, script, style and media, for an annotator who cannot reach the server.

It works without a network. What it may do is fixed by a policy in the file: run this script, show this style
and the pictures and sounds in it, ask nobody for anything.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from stratal.errors import InputError
from stratal.study.question import Question
from stratal.study.records import Answer, Item
from stratal.study.study import Study
from stratal.study.web.assets import asset, joined
from stratal.study.web.content import media_file
from stratal.study.web.looks import embedded, look_of
from stratal.study.web.view import SIDES, item_view, question_view

LARGEST = 200_000_000
"""Bytes of media in one file."""

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="referrer" content="no-referrer">
<title>Labelling</title>
<style>{style}</style>
</head>
<body>
<main id="root" class="stratal" data-home="page">
<noscript><p>This page needs JavaScript.</p></noscript>
</main>
<script type="application/json" id="study">{data}</script>
<script type="module">{script}</script>
</body>
</html>
"""


def page_in_one_file(study: Study, annotator: str, *, items: int | None = None) -> str:
    """Return a page with all items that are free for an annotator, and keep these items for that annotator.

    Parameters
    ----------
    study : Study
    annotator : str
    items : int, optional
        At most so many.

    Raises
    ------
    InputError
        If there is no such annotator, nothing is left to label, or the media are too large for one file.

    Examples
    --------
    >>> page_in_one_file.__name__
    'page_in_one_file'
    """
    given = study.offline(annotator, items=items)
    if not given["items"]:
        raise InputError(
            f"nothing is left for {annotator!r} to label", action="Ask `stratal status` who has what."
        )
    question = Question.from_dict(given["question"])
    look = look_of(study, _bounded(study))
    shown = [_item(entry) for entry in given["items"]]
    data = {
        "study": given["study"],
        "annotator": annotator,
        "question": question_view(question),
        "file": downloaded_as(annotator),
        "items": [{**item_view(item, question, look), "columns": _columns(item)} for item in shown],
    }
    script, style = joined("parts.js", "annotate.js", "offline.js"), asset("page.css")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:; "
        "media-src data:; base-uri 'none'; form-action 'none'"
    )
    return _PAGE.format(policy=policy, style=style, script=script, data=_inside_script(data))


def write_page(study: Study, path: Path, annotator: str, *, items: int | None = None) -> int:
    """Write a page in one file; return how many bytes it has.

    Examples
    --------
    >>> write_page.__name__
    'write_page'
    """
    try:
        with path.open("xb") as file:
            return _written(file, study, annotator, items)
    except FileExistsError:
        raise InputError(f"{path}: already exists", action="Give the name of a new file.") from None
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written ({error.strerror or error})", action="Choose another folder."
        ) from None
    except InputError:
        path.unlink(missing_ok=True)
        raise


def _written(file: IO[bytes], study: Study, annotator: str, items: int | None) -> int:
    return file.write(page_in_one_file(study, annotator, items=items).encode())


def _item(entry: dict[str, Any]) -> Item:
    answer, sides = entry["answer"], entry["sides"]
    return Item(
        **{
            **entry,
            "answer": None if answer is None else Answer(**answer),
            "sides": None if sides is None else (sides[0], sides[1]),
        }
    )


def _columns(item: Item) -> dict[str, str]:
    return dict(zip(SIDES, item.sides or (), strict=False))


def _bounded(study: Study) -> Callable[[str], str]:
    """Return what gives a medium as a `data:` address, refusing more than one file should hold."""
    media = look_of(study, str).media
    whole, taken = embedded(study), [0]

    def address(path: str) -> str:
        found = media_file(media, path)
        taken[0] += 0 if found is None else found.stat().st_size
        if taken[0] > LARGEST:
            raise InputError(
                "images and audio are too large for one file", allowed=f"{LARGEST // 10**6} MB",
                action="Give fewer items (--items).",
            )  # fmt: skip
        return whole(path)

    return address


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _inside_script(data: Any) -> str:
    """Return JSON that cannot end the element that it stands in."""
    return json.dumps(data, ensure_ascii=True).replace("<", "\\u003c").replace(">", "\\u003e")


def downloaded_as(annotator: str) -> str:
    """Return the name of the file that the page's button downloads.

    Examples
    --------
    >>> downloaded_as("ann")
    'labels-ann.json'
    """
    name = "".join(mark if mark.isalnum() or mark in "-_" else "-" for mark in annotator)
    return f"labels-{name}.json"
