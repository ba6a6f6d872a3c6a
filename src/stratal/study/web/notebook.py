"""The page without a server: in a notebook, where the kernel answers, or as one file, which works offline.

The file contains a content security policy: the browser runs only its script, shows only its style, images
and sounds, and sends no request.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stratal.designs.files import replacing
from stratal.designs.sample import Sample, require_sample
from stratal.errors import InputError, StratalError, optional_import
from stratal.protocols import JsonDict, JsonMapping
from stratal.study import creating
from stratal.study.database import DATABASE
from stratal.study.opening import create_study, open_study
from stratal.study.question import DEFAULT_QUESTION, Form, Item, StudyQuestion
from stratal.study.study import Study
from stratal.study.web import content
from stratal.study.web.content import HANDLERS, SIDES, Display, item_view


def annotate(
    sample: Sample | Study | str | Path,
    *,
    study: str | Path = "study",
    question: str | StudyQuestion = DEFAULT_QUESTION,
    choices: Iterable[str] = ("Pass", "Fail"),
    annotator: str = "me",
) -> Any:
    """Label a sample in a notebook. The labels are saved in a study folder, as with `stratal study serve`.

    Parameters
    ----------
    sample : Sample, Study, str or Path
        A sample, a study or its folder. For a sample, the folder `study` is created if it does not exist.
    study : str or Path
        Folder of the sample's study.
    question : str or StudyQuestion
        Question of a new study.
    choices : iterable of str
        Choices of a new study if the question is a text.
    annotator : str
        The person who labels; a new name is added to the study.

    Returns
    -------
    AnyWidget
        The notebook shows it. Its `labels()` returns the labels for `stratal.estimate(sample, …)`; its
        attribute `study` is the open study.

    Raises
    ------
    InputError
        If the folder contains the study of another sample, or if `sample` is neither a sample nor a study.
    MissingExtraError
        If anywidget is not installed.

    Examples
    --------
    >>> import stratal, tempfile
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.5, 0.9], ids=["a", "b", "c"])
    >>> sample = stratal.designs.SimpleRandom(budget=2).draw(population, seed=7)
    >>> widget = annotate(sample, study=tempfile.mkdtemp() + "/study")
    >>> widget.study.next_item("me").position
    1
    """
    with optional_import("anywidget", extra="notebook"):
        import anywidget
    folder = Path(study)
    if isinstance(sample, Study):
        opened = sample
    elif isinstance(sample, str | Path):
        opened = open_study(sample)
    elif not (folder / DATABASE).is_file():
        require_sample(sample, "annotate")
        if not isinstance(question, StudyQuestion):
            question = StudyQuestion.of_choices(question, choices)
        opened = create_study(folder, sample, question, annotators=[annotator])
    else:
        require_sample(sample, "annotate")
        opened = open_study(folder)
        if opened.sample().ids.tolist() != sample.ids.tolist():
            opened.close()
            action = "Give another folder (study=…), or the study itself: annotate('STUDY')."
            raise InputError(f"{folder} contains the study of another sample", action=action)
    if annotator not in opened.people:
        annotator = opened.add_annotator(annotator)
    display = content.display_of(opened, content.data_addresses(opened))
    # A damaged study cannot be estimated, so that its items must not be labelled.
    with opened.verified():
        pass

    class Annotation(anywidget.AnyWidget):
        _esm = content.join_scripts("parts.js", "annotate.js", "notebook.js")
        _css = content.asset("page.css")

        def labels(self) -> Any:
            """Return the current labels of the study."""
            return opened.labels()

    widget = Annotation()
    widget.study = opened
    widget.on_msg(lambda shown, message, _: shown.send(answer(opened, annotator, display, message)))
    return widget


def answer(study: Study, annotator: str, display: Display, message: object) -> JsonDict:
    """Return the reply of the kernel to a message of the page: an answer or an error."""
    request: JsonMapping
    if isinstance(message, dict):
        request = message
    else:
        request = {}
    resource = str(request.get("what"))
    try:
        if resource not in HANDLERS:
            raise InputError("unknown request from the page", given=repr(resource[:60]))
        reply: dict[str, Any] = {"answer": HANDLERS[resource](study, annotator, display, request.get("body"))}
    except StratalError as error:
        reply = {"error": {"kind": content.error_kind(error), "message": str(error)}}
    return {"id": request.get("id"), **reply}


def page_in_one_file(study: Study, annotator: str, *, items: int | None = None) -> str:
    """Return a page with the free items of an annotator, at most `items`, and reserve these items."""
    maker = PageMaker.of(study, annotator)
    return maker.page(study.reserve_for_page_file(annotator, items=items))


@dataclass(frozen=True, slots=True, kw_only=True)
class PageMaker:
    """The contents of a page in one file except its items, read before the transaction that reserves them."""

    annotator: str
    study_data: JsonDict
    form: Form
    display: Display

    @classmethod
    def of(cls, study: Study, annotator: str) -> PageMaker:
        """Read the contents of the page of an annotator."""
        with study.database.read() as connection:
            creating.require_person(connection, annotator)
        study_data = {
            "study": study.id,
            "annotator": annotator,
            "key": study.page_key(annotator),
            "name": study.names.get(annotator, annotator),
            "form": content.form_view(study),
            "file": download_name(annotator),
        }
        display = content.display_of(study, content.data_addresses(study))
        return cls(annotator=annotator, study_data=study_data, form=study.form, display=display)

    def page(self, items: tuple[Item, ...]) -> str:
        """Return the page with some items."""
        if not items:
            action = "See `stratal study status` for the progress of each annotator."
            raise InputError(f"no item is left for {self.annotator!r} to label", action=action)
        shown = [
            {
                **item_view(item, self.form, self.display),
                "columns": dict(zip(SIDES, item.sides or (), strict=False)),
            }
            for item in items
        ]
        return _page_of_data({**self.study_data, "items": shown}, https=self.display.https)


def _page_of_data(data: JsonDict, *, https: bool) -> str:
    """Return a page that contains its data; its policy allows only its own script and style."""
    script = content.join_scripts("parts.js", "annotate.js", "offline.js")
    style = content.asset("page.css")
    digests = (hashlib.sha256(text.encode()).digest() for text in (script, style))
    script_source, style_source = (f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    policy = (
        f"default-src 'none'; script-src {script_source}; style-src {style_source}; "
        f"img-src data:{' https:' if https else ''}; "
        "media-src data:; base-uri 'none'; form-action 'none'"
    )
    # Without these characters, a text in the data cannot end the script element.
    json_text = json.dumps(data, ensure_ascii=True).replace("<", "\\u003c").replace(">", "\\u003e")
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>\n'
        f'<script type="application/json" id="study">{json_text}</script>\n'
        f'<script type="module">{script}</script>'
    )
    return content.html_page("Labelling", head, "page")


def write_page(study: Study, path: Path, annotator: str, *, items: int | None = None) -> int:
    """Write a page in one file, and reserve its items for the annotator; return its size in bytes.

    After an error, there is no file, and no item is reserved.
    """
    if path.exists() or path.is_symlink():
        raise InputError(f"{path}: already exists", action="Give the name of a new file.")
    maker = PageMaker.of(study, annotator)
    pages: list[bytes] = []

    def write(items_of_page: tuple[Item, ...]) -> None:
        page = maker.page(items_of_page).encode()
        with replacing(path) as partial:
            partial.write_bytes(page)
        pages.append(page)

    try:
        study.reserve_for_page_file(annotator, items=items, write=write)
    except BaseException as error:
        # The file was written, but its items could not be reserved.
        if pages:
            path.unlink(missing_ok=True)
        if isinstance(error, OSError):
            problem = f"{path} cannot be written ({error.strerror or error})"
            raise InputError(
                problem, action="Give the name of a new file in a folder that you can write to."
            ) from None
        raise
    return len(pages[0])


def download_name(annotator: str) -> str:
    """Return the name of the file that a person downloads from the page."""
    name = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in annotator)
    return f"labels-{name}.json"
