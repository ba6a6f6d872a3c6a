"""The labelling page in one file, which works without a server and without a network.

The file contains a content security policy: the browser runs only its script, shows only its style, images
and sounds, and sends no request.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from stratal.designs.files import replacing
from stratal.errors import InputError
from stratal.protocols import JsonDict
from stratal.study.creating import require_person
from stratal.study.question import Form, Item
from stratal.study.study import Study
from stratal.study.web import content
from stratal.study.web.content import SIDES, Display, item_view


@dataclass(frozen=True, slots=True, kw_only=True)
class _PageContents:
    """The contents of a page in one file except its items."""

    annotator: str
    study_data: JsonDict
    form: Form
    display: Display

    @classmethod
    def read(cls, study: Study, annotator: str) -> _PageContents:
        """Return the contents of the page of an annotator."""
        with study.database.read() as connection:
            require_person(connection, annotator)
        study_data = {
            "study": study.id,
            "annotator": annotator,
            "key": study.page_key(annotator),
            "name": study.names.get(annotator, annotator),
            "form": content.form_view(study),
            "file": download_name(annotator),
        }
        display = content.read_display(study, content.data_addresses(study))
        return cls(annotator=annotator, study_data=study_data, form=study.form, display=display)

    def html(self, items: tuple[Item, ...]) -> str:
        """Return the page with these items."""
        if not items:
            action = "See `stratal study status` for the progress of each annotator."
            raise InputError(f"no item is left for {self.annotator!r} to label", action=action)
        # The page needs the column of each side of a comparison, because no server decodes its answers.
        shown_items = [
            {
                **item_view(item, self.form, self.display),
                "columns": dict(zip(SIDES, item.sides or (), strict=False)),
            }
            for item in items
        ]
        return _html_with_data({**self.study_data, "items": shown_items}, https=self.display.https)


def _html_with_data(data: JsonDict, *, https: bool) -> str:
    """Return a page that contains its data; its policy allows only its own script and style."""
    script = content.join_scripts("parts.js", "annotate.js", "offline.js")
    style = content.read_page_file("page.css")
    digests = (hashlib.sha256(text.encode()).digest() for text in (script, style))
    script_source, style_source = (f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    policy = (
        f"default-src 'none'; script-src {script_source}; style-src {style_source}; "
        f"img-src data:{' https:' if https else ''}; "
        "media-src data:; base-uri 'none'; form-action 'none'"
    )
    # Without < and >, a text in the data cannot end the script element.
    json_text = json.dumps(data, ensure_ascii=True).replace("<", "\\u003c").replace(">", "\\u003e")
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>\n'
        f'<script type="application/json" id="study">{json_text}</script>\n'
        f'<script type="module">{script}</script>'
    )
    return content.html_page("Labelling", head, "page")


def write_page(study: Study, path: Path, annotator: str, *, items: int | None = None) -> int:
    """Write a page in one file, and reserve its items for the annotator; return its size in bytes.

    The items are all free items, or at most `items`. After an error, there is no file, and no item is
    reserved.
    """
    if path.exists() or path.is_symlink():
        raise InputError(f"{path}: already exists", action="Give the name of a new file.")
    # Read before the transaction that reserves the items.
    contents = _PageContents.read(study, annotator)
    size = 0

    def write(items_of_page: tuple[Item, ...]) -> None:
        nonlocal size
        page = contents.html(items_of_page).encode()
        with replacing(path) as partial:
            partial.write_bytes(page)
        size = len(page)

    try:
        study.reserve_for_page_file(annotator, items=items, write=write)
    except BaseException as error:
        # The file was written, but its items could not be reserved.
        if size:
            path.unlink(missing_ok=True)
        if isinstance(error, OSError):
            problem = f"{path} cannot be written ({error.strerror or error})"
            raise InputError(
                problem, action="Give the name of a new file in a folder that you can write to."
            ) from None
        raise
    return size


def download_name(annotator: str) -> str:
    """Return the name of the file of labels that the annotator downloads from the page."""
    name = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in annotator)
    return f"labels-{name}.json"
