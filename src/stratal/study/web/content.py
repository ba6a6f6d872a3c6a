"""Data of a study for its page: items as safe HTML, questions, answers and progress; files of the page.

No content of an item is executed: text is escaped, and Markdown and HTML pass through a sanitiser (ammonia,
by `nh3`) that keeps a short list of elements and removes scripts, styles, ids and external addresses. The
page has one script for its three forms (server, notebook, single file), a small script for each, and one
style.

The two columns of a pair are named A and B in the order in which an annotator sees them, so that the page
never contains the name of a model. An item does not contain proxies, predictions or strata.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from pathlib import Path
from string import Template
from typing import Any
from urllib.parse import quote

from msgspec import Struct, structs

from stratal.errors import InputError, StratalError, optional_import, suggest_names
from stratal.labels.annotation_tools import is_chat
from stratal.protocols import JsonDict
from stratal.study.database import StudyError
from stratal.study.import_export import parse_page_action
from stratal.study.items import ITEMS_AHEAD, sides
from stratal.study.question import MULTIPLE_CHOICE_KINDS, PAIR, TIE, Answer, Form, Item, StudyQuestion
from stratal.study.study import Study

# Formats of a column. `auto` detects images, audio, chats and JSON; everything else is text.
DISPLAY_FORMATS = ("auto", "text", "markdown", "html", "json", "chat", "image", "audio")

# Media type of each file that is sent, by suffix. Other files are not sent.
MEDIA_TYPES = {
    ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif",
    ".webp": "image/webp", ".avif": "image/avif", ".bmp": "image/bmp", ".svg": "image/svg+xml",
    ".mp3": "audio/mpeg", ".wav": "audio/wav", ".ogg": "audio/ogg", ".oga": "audio/ogg",
    ".opus": "audio/ogg", ".flac": "audio/flac", ".m4a": "audio/mp4", ".aac": "audio/aac",
}  # fmt: skip

# An address that `auto` shows as an image; for other addresses, the column needs the format `image`. Two
# expressions, because each is matched in linear time.
_HTTPS_ADDRESS = re.compile(r"https://[^\s\"'<>]++", re.IGNORECASE)
_PICTURE_ENDING = re.compile(r"[^/]\.(?:png|jpe?g|gif|webp|avif)(?:\?|\Z)", re.IGNORECASE)

# Longest path or address of an image in characters; longer ones are text.
MAX_PATH_LENGTH = 500

# Attributes that cannot run code, load a file or change the page around the text.
_ATTRIBUTES = {
    "*": {"dir", "lang", "title"}, "a": {"href"}, "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan", "scope"}, "ol": {"start"},
}  # fmt: skip


class Display(Struct, frozen=True, kw_only=True):
    """Settings for showing the columns of items.

    Parameters
    ----------
    media : Path
        Folder of images and audio.
    address : callable
        Returns the address in the page of a file in that folder (a path with `/`).
    formats : mapping of column to format, optional
    https : bool
        Whether images of other servers (https) are shown. These servers learn who looks at them, and when.
    """

    media: Path
    address: Callable[[str], str]
    formats: Mapping[str, str] = {}
    https: bool = False

    def show(self, name: str, value: Any) -> JsonDict:
        """Return the `name` of a column and its value as safe `html`."""
        display_format = self.formats.get(name, "auto")
        value = _decode_json(value, display_format)
        if display_format == "auto" and isinstance(value, str):
            display_format = self._detect_format(value)
        if value is None or value == "":
            return {"name": name, "html": '<p class="nothing">(nothing)</p>'}
        if display_format in ("image", "audio"):
            return {"name": name, "html": self._medium_html(name, str(value), display_format)}
        if is_chat(value):
            shown = _chat_html(value, display_format, self.https)
        else:
            shown = _value_html(value, display_format, self.https)
        return {"name": name, "html": shown}

    def _detect_format(self, value: str) -> str:
        """Return `image` or `audio` for the path of a medium, `image` for an allowed link, else `text`."""
        if self.https and is_picture_link(value):
            return "image"
        path = media_file(self.media, value)
        if path is None:
            return "text"
        return MEDIA_TYPES[path.suffix.lower()].split("/")[0]

    def _medium_html(self, name: str, value: str, display_format: str) -> str:
        """Return the element of an image or a sound, or the reason why it is not shown."""
        is_local = media_file(self.media, value) is not None
        is_external = value.startswith("https://")
        if not (is_local or (is_external and self.https and display_format == "image")):
            if is_external:
                reason = "This picture is on another server"
            else:
                reason = f"This {display_format} file was not found"
            return f'<p class="nothing">{reason}: {html.escape(value[:MAX_PATH_LENGTH])}</p>'
        address = html.escape(self.address(value) if is_local else value)
        label = html.escape(name)
        if display_format == "image":
            return f'<img src="{address}" alt="{label}">'
        return f'<audio src="{address}" controls preload="metadata" aria-label="{label}"></audio>'


def is_picture_link(text: str) -> bool:
    """Return whether a text is the address of a picture."""
    return _HTTPS_ADDRESS.fullmatch(text) is not None and _PICTURE_ENDING.search(text) is not None


def media_file(folder: Path, path: str) -> Path | None:
    """Return an image or sound in a folder; None for other files and for paths that lead out of it."""
    if not path or len(path) > MAX_PATH_LENGTH or not path.isprintable() or "\\" in path:
        return None
    try:
        root = folder.resolve()
        file = (root / path).resolve()
        is_inside = file.is_relative_to(root) and file.is_file()
    except (OSError, ValueError, RuntimeError):
        # Names that are too long for the file system, null bytes, and loops of links.
        return None
    if is_inside and file.suffix.lower() in MEDIA_TYPES:
        return file
    return None


# The cache holds the texts that are shown now, which are requested again whenever the page is loaded.
@lru_cache(maxsize=256)
def safe_html(text: str, https: bool = False) -> str:
    """Return HTML without scripts, styles and loaded files; with `https`, it may have external images."""
    with optional_import("nh3", extra="web"):
        import nh3
    # Images load files. Landmarks such as headers would be confused with those of the page.
    tags = nh3.ALLOWED_TAGS - {"img", "map", "area", "article", "aside", "footer", "header", "nav"}
    attributes = _ATTRIBUTES
    if https:
        tags = tags | {"img"}
        attributes = attributes | {"img": {"src", "alt"}}
    return nh3.clean(
        text,
        tags=tags,
        attributes=attributes,
        attribute_filter=_only_https,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
        set_tag_attribute_values={"a": {"target": "_blank"}},
    )


def _only_https(tag: str, name: str, value: str) -> str | None:
    """Return the value of an attribute, None for the source of an image that is not an https address."""
    if tag == "img" and name == "src" and not value.startswith("https://"):
        return None
    return value


@lru_cache(maxsize=256)
def markdown(text: str, https: bool = False) -> str:
    """Return Markdown as safe HTML."""
    return safe_html(_parser().render(text), https)


@cache
def _parser() -> Any:
    """Return the parser of Markdown with tables, in which HTML is shown as text."""
    with optional_import("markdown-it-py", extra="web"):
        from markdown_it import MarkdownIt
    return MarkdownIt("commonmark", {"html": False}).enable("table").enable("strikethrough")


def _decode_json(value: object, display_format: str) -> Any:
    """Return the list or object of a text in JSON; other values are unchanged."""
    if not isinstance(value, str) or display_format not in ("auto", "json", "chat", "markdown"):
        return value
    text = value.strip()
    if not (text.startswith(("{", "[")) and text.endswith(("}", "]"))):
        return value
    try:
        decoded = json.loads(text)
    except (ValueError, RecursionError):
        # A text in brackets that is no JSON is shown as it is.
        return value
    # Markdown may be in brackets, but a chat may have turns in Markdown.
    if display_format != "markdown" or is_chat(decoded):
        return decoded
    return value


def _value_html(value: object, display_format: str, https: bool = False) -> str:
    """Return a value as an HTML element."""
    if isinstance(value, dict | list):
        text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
        return f'<pre class="json" dir="ltr" tabindex="0">{html.escape(text)}</pre>'
    if display_format == "markdown":
        return f'<div class="prose" dir="auto">{markdown(str(value), https)}</div>'
    if display_format == "html":
        return f'<div class="prose" dir="auto">{safe_html(str(value), https)}</div>'
    return f'<div class="text" dir="auto">{html.escape(str(value))}</div>'


def _chat_html(turns: list[JsonDict], display_format: str, https: bool = False) -> str:
    """Return the turns of a chat as an HTML list."""
    turn_format = display_format if display_format == "markdown" else "text"
    elements = []
    for turn in turns:
        role = html.escape(turn["role"])
        content = _turn_html(turn["content"], turn_format, https)
        elements.append(f'<li class="turn" data-role="{role}"><p class="role">{role}</p>{content}</li>')
    return f'<ol class="chat">{"".join(elements)}</ol>'


def _turn_html(content: object, turn_format: str, https: bool = False) -> str:
    """Return the content of a turn: a text, or a list of blocks, of which some have a text."""
    if isinstance(content, list):
        texts = [block.get("text") if isinstance(block, dict) else None for block in content]
        blocks = [
            text if isinstance(text, str) else block for block, text in zip(content, texts, strict=True)
        ]
        return "".join(_turn_html(block, turn_format, https) for block in blocks)
    return _value_html("" if content is None else content, turn_format, https)


def read_display(study: Study, address: Callable[[str], str]) -> Display:
    """Return the display settings that are stored in a study, so that all of its pages show the same."""
    formats = json.loads(study.setting("page_formats") or "{}")
    https = study.setting("page_images") == "https"
    folder = study.media
    stored_folder = study.setting("page_media")
    # A copy of the study does not use the folder.
    if stored_folder and study.setting("page_media_of") == _file_identity(study):
        folder = Path(stored_folder)
    return Display(media=folder, address=address, formats=formats, https=https)


def _file_identity(study: Study) -> str:
    """Return a text that distinguishes the file of a study from its copies.

    The stored folder of media is valid only on the computer where it was given. Otherwise the author of a
    study could make another computer show the images of a private folder.
    """
    status = study.database.path.stat()
    return f"{status.st_dev}:{status.st_ino}"


def save_display(
    study: Study,
    formats: Mapping[str, str] | None = None,
    media: Path | None = None,
    images: str | None = None,
) -> None:
    """Save the formats of a study's columns, the folder of its media, and the allowed sources of images.

    `images` is `study` if only images of the folder are shown, or `https` if those of other servers are too.
    """
    for column, display_format in (formats or {}).items():
        if display_format not in DISPLAY_FORMATS:
            problem = f"unknown format for column {column!r}"
            allowed = suggest_names(display_format, DISPLAY_FORMATS)
            raise InputError(problem, given=repr(display_format), allowed=allowed)
    if images not in (None, "https", "study"):
        raise InputError("unknown source of pictures", given=repr(images), allowed="https or study")
    if media is not None and not media.is_dir():
        action = "Give the folder with the files of the items (--media)."
        raise InputError(f"{media}: the folder of images and audio does not exist", action=action)
    if not (images or formats or media):
        return
    with study.database.write() as connection:
        if images is not None:
            connection.save_settings(page_images=images)
        if formats:
            stored_formats = json.loads(connection.setting("page_formats") or "{}")
            connection.save_settings(
                page_formats=json.dumps({**stored_formats, **formats}, ensure_ascii=False)
            )
        if media is not None:
            connection.save_settings(page_media=str(media.resolve()), page_media_of=_file_identity(study))


def media_address(path: str) -> str:
    """Return the address of a medium, relative to that of the page."""
    return f"media/{quote(path)}"


def data_addresses(study: Study) -> Callable[[str], str]:
    """Return the function that returns the content of an image or a sound as a `data:` address."""
    folder = read_display(study, str).media

    def address(path: str) -> str:
        file = media_file(folder, path)
        if file is None:
            return ""
        content = base64.b64encode(file.read_bytes()).decode()
        return f"data:{MEDIA_TYPES[file.suffix.lower()]};base64,{content}"

    return address


@cache
def read_page_file(name: str) -> str:
    """Return the text of a file in the folder `static`, from which pages are built."""
    return (Path(__file__).parent / "static" / name).read_text(encoding="utf-8")


def html_page(title: str, head: str, page_class: str, body: str = "") -> str:
    """Return a complete page with the elements of its head and body; `page_class` selects its style."""
    # Only the page of an error works without a script.
    if page_class != "text":
        body += "<noscript><p>This page requires JavaScript.</p></noscript>"
    return Template(read_page_file("page.html")).substitute(
        title=title, head=head, page_class=page_class, body=body
    )


def join_scripts(*names: str) -> str:
    """Return several scripts as one module, without their imports from each other."""
    return "\n".join(re.sub(r"(?m)^import \{.*$\n", "", read_page_file(name)) for name in names)


# Names of the two columns of a pair on the page, in display order.
SIDES = ("A", "B")

# Setting of the study: whether a choice that answers all questions is submitted at once.
SUBMIT_ON_CHOICE = "page_submit_on_choice"


def question_view(question: StudyQuestion) -> JsonDict:
    """Return a question in the form that the page expects."""
    is_pair = question.kind == PAIR
    # The choices of a pair are the names of its columns, which the page must not know.
    names = (*SIDES, TIE) if is_pair else tuple(choice.name for choice in question.choices)
    choices = []
    for name, choice in zip(names, question.choices, strict=True):
        label = "Tie" if is_pair and name == TIE else name
        choices.append({"value": name, "label": label, "key": choice.key})
    return {
        "name": question.name,
        "text": question.text,
        "kind": question.kind,
        "choices": choices,
        # Texts at both ends of a scale.
        "ends": question.ends,
        # The earlier question, and its answer for which this one is asked.
        "when": question.when,
    }


def form_view(study: Study) -> JsonDict:
    """Return all questions and the rubric in the form that the page expects."""
    # The first question has the rubric of the whole form.
    first = study.form.first
    return {
        "questions": [question_view(question) for question in study.form.questions],
        "rubric": markdown(first.rubric) if first.rubric else "",
        "rubric_version": first.rubric_version,
        "submit_on_choice": study.setting(SUBMIT_ON_CHOICE) == "yes",
    }


def item_view(item: Item, form: Form, display: Display) -> JsonDict:
    """Return an item in the form that the page expects."""
    pair = form.pair or ()
    fields = [display.show(name, value) for name, value in item.payload.items() if name not in pair]
    side_views = []
    # An item of another kind of question has no sides.
    for side, column in zip(SIDES, item.sides or (), strict=False):
        side_views.append({**display.show(column, item.payload.get(column)), "name": side})
    return {
        "id": item.id,
        "position": item.position,
        "fields": fields,
        "sides": side_views,
        "answer": None if item.answer is None else answer_view(item.answer, item, form),
        "flagged": item.flagged,
    }


def answer_view(answer: Answer, item: Item, form: Form) -> JsonDict:
    """Return an answer by question, in the form that the page expects and without the name of the person."""
    answers: JsonDict = dict(form.answers(answer.value))
    for question in form.questions:
        value = answers.get(question.name)
        if question.kind == PAIR and item.sides and value in item.sides:
            answers[question.name] = SIDES[item.sides.index(str(value))]
        elif question.kind in MULTIPLE_CHOICE_KINDS and value is not None:
            answers[question.name] = json.loads(value)
    return {"status": answer.status, "value": answers or None, "note": answer.note, "seq": answer.seq}


def state(study: Study, annotator: str, display: Display, _: object = None) -> JsonDict:
    """Return the data that a page requests when it is opened."""
    return {
        "study": study.id,
        "annotator": annotator,
        "name": study.names.get(annotator, annotator),
        "form": form_view(study),
        "adjudicator": annotator in study.adjudicators,
        **_annotator_state(study, annotator, display),
    }


def _annotator_state(study: Study, annotator: str, display: Display) -> JsonDict:
    """Return the current item (None if no item is left), the items ahead of it, and the progress."""
    form = study.form
    items = [item_view(item, form, display) for item in study.next_items(annotator, ahead=ITEMS_AHEAD)]
    return {
        "item": items[0] if items else None,
        "ahead": items[1:],
        "progress": study.progress(annotator).to_dict(),
    }


def view_assigned_item(study: Study, annotator: str, display: Display, item: object) -> JsonDict:
    """Return an item that was assigned to this annotator before."""
    return {"item": item_view(study.item(annotator, str(item)), study.form, display)}


def answer_history(study: Study, annotator: str, _: Display, before: object) -> JsonDict:
    """Return the items that this annotator answered before a line of the journal, newest first."""
    line = None
    if before is not None:
        text = str(before)
        # Longer numbers may not fit into the 64 bits of a column of SQLite.
        if not (text.isascii() and text.isdigit() and len(text) < 18):
            raise InputError("'before' must be the number of a line of the journal", given=repr(before)[:60])
        line = int(text)
    answers = study.history(annotator, before=line)
    return {"answers": [{"item": answer.item, "seq": answer.seq} for answer in answers]}


def view_disagreements(study: Study, annotator: str, display: Display, _: object = None) -> JsonDict:
    """Return the items that need a decision, with their answers; none if the annotator may not decide.

    `mine` is the number that is assigned to this annotator.
    """
    form = study.form
    assigned_count, disagreements = study.assigned_disagreements(annotator)
    views = []
    for disagreement in disagreements:
        item = disagreement.item
        item = structs.replace(item, sides=sides(form, item.id, annotator, study.id))
        answers = [answer_view(answer, item, form) for answer in disagreement.answers]
        views.append({**item_view(item, form, display), "answers": answers})
    return {"disagreements": views, "mine": assigned_count}


def save_page_action(study: Study, annotator: str, display: Display, body: object) -> JsonDict:
    """Save an action of a page; return the receipt, the next item and the progress."""
    page_action = parse_page_action(body)
    item = page_action.item
    form = study.form
    value: Any = page_action.value
    if form.pair and value is not None:
        displayed_sides = sides(form, str(item), annotator, study.id) or ()
        value = _with_columns_of_sides(form, displayed_sides, value)
    receipt = study.save_action(
        annotator, page_action.action, item, value, ahead=ITEMS_AHEAD, **page_action.details
    )
    return {"receipt": receipt.to_dict(), **_annotator_state(study, annotator, display)}


def _with_columns_of_sides(form: Form, displayed_sides: tuple[str, ...], value: Any) -> JsonDict:
    """Return answers by question, in which the columns of a pair replace the sides `A` and `B`."""
    columns = dict(zip((*SIDES, TIE), (*displayed_sides, TIE), strict=True))
    answers = value if isinstance(value, dict) else {form.first.name: value}
    pairs = {question.name for question in form.questions if question.kind == PAIR}
    converted: JsonDict = {}
    for name, answer in answers.items():
        if name not in pairs:
            converted[name] = answer
            continue
        # A page may send a list, which no mapping can contain.
        if not (isinstance(answer, str) and answer in columns):
            raise InputError("unknown side", given=repr(answer)[:60], allowed=", ".join(columns))
        converted[name] = columns[answer]
    return converted


# Resource that a page requests → function that returns the response. Its last argument is the content of the
# request, or None; some resources do not need it, or the display settings.
HANDLERS: dict[str, Callable[[Study, str, Display, Any], JsonDict]] = {
    "state": state,
    "item": view_assigned_item,
    "trail": answer_history,
    "disagreements": view_disagreements,
    "act": save_page_action,
}


def error_kind(error: StratalError) -> str:
    """Return the kind of an error, which determines the reaction of the page; `input` for other errors."""
    if isinstance(error, StudyError):
        return error.kind
    return "input"
