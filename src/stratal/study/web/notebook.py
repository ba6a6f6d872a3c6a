"""The page without the server: in a notebook, where the kernel answers, and in one file, which works offline.

What the file may do is fixed by a policy in it: run this script, show this style and the pictures and sounds
in it, ask nobody for anything.
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
    """Label a sample in a notebook; the labels are saved in a study folder, as on the labelling page.

    Parameters
    ----------
    sample : Sample, Study, str or Path
        The sample to label, for which the study folder is created if it does not exist; or a study or its
        folder.
    study : str or Path
        Folder of the sample's study.
    question : str or StudyQuestion
        The question of a new study.
    choices : iterable of str
        The choices of a new study if `question` is a text.
    annotator : str
        Name of the annotator; a new annotator is added to the study.

    Returns
    -------
    AnyWidget
        The widget that the notebook shows. Pass its `labels()` to `stratal.estimate(sample, …)`; its `study`
        is the open study.

    Raises
    ------
    InputError
        If the folder contains the study of another sample, and if `sample` is neither a sample nor a study.
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
        if isinstance(question, StudyQuestion):
            requested = question
        else:
            requested = StudyQuestion.of_choices(question, choices)
        opened = create_study(folder, sample, requested, annotators=[annotator])
    else:
        require_sample(sample, "annotate")
        opened = open_study(folder)
        if opened.sample().ids.tolist() != sample.ids.tolist():
            opened.close()
            action = "Give another folder (study=…), or the study itself: annotate('STUDY')."
            raise InputError(f"{folder} contains the study of another sample", action=action)
    if annotator not in opened.people:
        annotator = opened.add_annotator(annotator)
    display = content.display_of(opened, content.embedded(opened))
    with opened.verified():  # nobody shall label what no estimate will take
        pass

    class Annotation(anywidget.AnyWidget):
        _esm = content.join_scripts("parts.js", "annotate.js", "notebook.js")
        _css = content.asset("page.css")

        def labels(self) -> Any:
            """Return the study's present labels."""
            return opened.labels()

    widget = Annotation()
    widget.study = opened
    widget.on_msg(lambda shown, message, _: shown.send(answer(opened, annotator, display, message)))
    return widget


def answer(study: Study, annotator: str, display: Display, message: object) -> JsonDict:
    """Return what the kernel says to a message of the page: an answer, or what is wrong."""
    requested: JsonMapping
    if isinstance(message, dict):
        requested = message
    else:
        requested = {}
    kind = str(requested.get("what"))
    try:
        if kind not in HANDLERS:
            raise InputError("unknown request from the page", given=repr(kind[:60]))
        reply: dict[str, Any] = {"answer": HANDLERS[kind](study, annotator, display, requested.get("body"))}
    except StratalError as error:
        reply = {"error": {"kind": content.error_kind(error), "message": str(error)}}
    return {"id": requested.get("id"), **reply}


def page_in_one_file(study: Study, annotator: str, *, items: int | None = None) -> str:
    """Return a page with all items that are free for an annotator, or so many, and keep them for that one."""
    maker = PageMaker.of(study, annotator)
    return maker.page(study.reserve_for_page_file(annotator, items=items))


@dataclass(frozen=True, slots=True, kw_only=True)
class PageMaker:
    """The contents of a page in one file except its items, read before the transaction that keeps them."""

    annotator: str
    described: JsonDict
    form: Form
    display: Display

    @classmethod
    def of(cls, study: Study, annotator: str) -> PageMaker:
        """Return what the page of an annotator shows."""
        with study.database.read() as connection:
            creating.require_person(connection, annotator)
        described = {
            "study": study.id,
            "annotator": annotator,
            "key": study.page_key(annotator),
            "name": study.names.get(annotator, annotator),
            "form": content.form_view(study),
            "file": downloaded_as(annotator),
        }
        display = content.display_of(study, content.embedded(study))
        return cls(annotator=annotator, described=described, form=study.form, display=display)

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
        return _page_of_data({**self.described, "items": shown}, https=self.display.https)


def _page_of_data(data: JsonDict, *, https: bool) -> str:
    """Return a page that holds its data, and whose policy allows its own script and style alone."""
    script = content.join_scripts("parts.js", "annotate.js", "offline.js")
    style = content.asset("page.css")
    digests = (hashlib.sha256(text.encode()).digest() for text in (script, style))
    of_script, of_style = (f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    policy = (
        f"default-src 'none'; script-src {of_script}; style-src {of_style}; "
        f"img-src data:{' https:' if https else ''}; "
        "media-src data:; base-uri 'none'; form-action 'none'"
    )
    # JSON that cannot end the element that it stands in.
    inside = json.dumps(data, ensure_ascii=True).replace("<", "\\u003c").replace(">", "\\u003e")
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>\n'
        f'<script type="application/json" id="study">{inside}</script>\n'
        f'<script type="module">{script}</script>'
    )
    return content.html_page("Labelling", head, "page")


def write_page(study: Study, path: Path, annotator: str, *, items: int | None = None) -> int:
    """Write a page in one file; return how many bytes it has.

    The file is whole and its items are kept for the annotator, or neither.
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
        if pages:  # the file was written, and its items could not be kept
            path.unlink(missing_ok=True)
        if isinstance(error, OSError):
            problem = f"{path} cannot be written ({error.strerror or error})"
            raise InputError(
                problem, action="Give the name of a new file in a folder that you can write to."
            ) from None
        raise
    return len(pages[0])


def downloaded_as(annotator: str) -> str:
    """Return the name of the file that the page's button downloads."""
    name = "".join(mark if mark.isalnum() or mark in "-_" else "-" for mark in annotator)
    return f"labels-{name}.json"
