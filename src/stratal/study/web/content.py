"""Data of a study for its page: items as HTML that can be shown, questions, answers, progress.

Nothing of an item is ever run: text is escaped, and Markdown and HTML pass through a sanitiser (ammonia, by
`nh3`) that keeps a short list of elements and drops scripts, styles, ids and foreign addresses. Also the
page's own files: one script for all three homes of the page, a small one for each, one style.

The two columns of a pair are called A and B in the order in which an annotator sees them, so that a model's
name never reaches the page. Proxy, prediction and stratum are not in an item to begin with.
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
from stratal.study.import_export import page_action
from stratal.study.items import ITEMS_AHEAD, sides
from stratal.study.question import MULTIPLE_CHOICE_KINDS, PAIR, TIE, Answer, Form, Item, StudyQuestion
from stratal.study.study import Study

# How a column can be shown; `auto` sees images, audio, chats and JSON by themselves, the rest is text.
DISPLAY_FORMATS = ("auto", "text", "markdown", "html", "json", "chat", "image", "audio")

# Endings of the files that are handed out, and what they are.
MEDIA_TYPES = {
    ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif",
    ".webp": "image/webp", ".avif": "image/avif", ".bmp": "image/bmp", ".svg": "image/svg+xml",
    ".mp3": "audio/mpeg", ".wav": "audio/wav", ".ogg": "audio/ogg", ".oga": "audio/ogg",
    ".opus": "audio/ogg", ".flac": "audio/flac", ".m4a": "audio/mp4", ".aac": "audio/aac",
}  # fmt: skip

# What is taken for a picture elsewhere by itself; other addresses need the format image. The two are
# matched one after the other, each in linear time.
_HTTPS_ADDRESS = re.compile(r"https://[^\s\"'<>]++", re.IGNORECASE)
_PICTURE_ENDING = re.compile(r"[^/]\.(?:png|jpe?g|gif|webp|avif)(?:\?|\Z)", re.IGNORECASE)

# Characters of the name of a picture.
LONGEST_PATH = 500

# Attributes that cannot run code, load a file or change the page around the text.
_ATTRIBUTES = {
    "*": {"dir", "lang", "title"}, "a": {"href"}, "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan", "scope"}, "ol": {"start"},
}  # fmt: skip


class Display(Struct, frozen=True, kw_only=True):
    """How the columns of a study are shown.

    Parameters
    ----------
    media : Path
        Folder of images and audio.
    address : callable
        Gives the address of a file in that folder (a path with `/`), to be put into the page.
    formats : mapping of column to format, optional
    https : bool
        Whether pictures at addresses with https are shown: whoever serves them learns who looks, and when.
    """

    media: Path
    address: Callable[[str], str]
    formats: Mapping[str, str] = {}
    https: bool = False

    def show(self, name: str, value: Any) -> JsonDict:
        """Return one column of an item: its `name`, `html` that is safe in a page."""
        kind = self.formats.get(name, "auto")
        value = _structured(value, kind)
        if kind == "auto" and isinstance(value, str):
            path = media_file(self.media, value)
            if path is None:
                kind = "text"
            else:
                kind = MEDIA_TYPES[path.suffix.lower()].split("/")[0]
            if self.https and is_picture_link(value):
                kind = "image"
        if value is None or value == "":
            return {"name": name, "html": '<p class="nothing">(nothing)</p>'}
        if kind in ("image", "audio"):
            return {"name": name, "html": self._medium(name, str(value), kind)}
        if is_chat(value):
            shown = _chat(value, kind, self.https)
        else:
            shown = _written(value, kind, self.https)
        return {"name": name, "html": shown}

    def _medium(self, name: str, value: str, kind: str) -> str:
        exists = media_file(self.media, value) is not None
        elsewhere = value.startswith("https://")
        if not (exists or (elsewhere and self.https and kind == "image")):
            if elsewhere:
                why = "This picture is on another server"
            else:
                why = f"This {kind} file was not found"
            return f'<p class="nothing">{why}: {html.escape(value[:LONGEST_PATH])}</p>'
        address = html.escape(self.address(value) if exists else value)
        label = html.escape(name)
        if kind == "image":
            return f'<img src="{address}" alt="{label}">'
        return f'<audio src="{address}" controls preload="metadata" aria-label="{label}"></audio>'


def is_picture_link(text: str) -> bool:
    """Return whether a text is the address of a picture."""
    return _HTTPS_ADDRESS.fullmatch(text) is not None and _PICTURE_ENDING.search(text) is not None


def media_file(folder: Path, path: str) -> Path | None:
    """Return an image or sound in a folder, None for anything else and for whatever lies outside."""
    if not path or len(path) > LONGEST_PATH or not path.isprintable() or "\\" in path:
        return None
    try:
        root = folder.resolve()
        path_inside = (root / path).resolve()
        inside = path_inside.is_relative_to(root) and path_inside.is_file()
    except (OSError, ValueError, RuntimeError):
        # Names that are too long for the file system, null bytes, and loops of links.
        return None
    if inside and path_inside.suffix.lower() in MEDIA_TYPES:
        return path_inside
    return None


# The texts that are shown now: each is asked for again each time the page is loaded.
@lru_cache(maxsize=256)
def safe_html(text: str, https: bool = False) -> str:
    """Return HTML without anything that runs, loads or restyles; with `https` pictures at such addresses."""
    with optional_import("nh3", extra="web"):
        import nh3
    # Nothing that loads, and no landmarks, which are the page's own.
    tags = nh3.ALLOWED_TAGS - {"img", "map", "area", "article", "aside", "footer", "header", "nav"}
    return nh3.clean(
        text,
        tags=tags | {"img"} if https else tags,
        attributes=_ATTRIBUTES | {"img": {"src", "alt"}} if https else _ATTRIBUTES,
        attribute_filter=_only_https,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
        set_tag_attribute_values={"a": {"target": "_blank"}},
    )


def _only_https(tag: str, name: str, value: str) -> str | None:
    if tag == "img" and name == "src" and not value.startswith("https://"):
        return None
    return value


@lru_cache(maxsize=256)
def markdown(text: str, https: bool = False) -> str:
    """Return Markdown as safe HTML."""
    return safe_html(_parser().render(text), https)


@cache
def _parser() -> Any:
    with optional_import("markdown-it-py", extra="web"):
        from markdown_it import MarkdownIt
    return MarkdownIt("commonmark", {"html": False}).enable("table").enable("strikethrough")


def _structured(value: object, kind: str) -> Any:
    """Return what a text holds, where it holds a list or an object in JSON."""
    if not isinstance(value, str) or kind not in ("auto", "json", "chat", "markdown"):
        return value
    text = value.strip()
    if not (text.startswith(("{", "[")) and text.endswith(("}", "]"))):
        return value
    try:
        decoded = json.loads(text)
    except (ValueError, RecursionError):
        # A text in brackets that is no JSON is shown as it is.
        return value
    if kind != "markdown" or is_chat(decoded):
        return decoded
    return value


def _written(value: object, kind: str, https: bool = False) -> str:
    if isinstance(value, dict | list):
        text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
        return f'<pre class="json" dir="ltr" tabindex="0">{html.escape(text)}</pre>'
    if kind == "markdown":
        return f'<div class="prose" dir="auto">{markdown(str(value), https)}</div>'
    if kind == "html":
        return f'<div class="prose" dir="auto">{safe_html(str(value), https)}</div>'
    return f'<div class="text" dir="auto">{html.escape(str(value))}</div>'


def _chat(turns: list[JsonDict], kind: str, https: bool = False) -> str:
    kind = kind if kind == "markdown" else "text"
    shown = []
    for turn in turns:
        role = html.escape(turn["role"])
        content = _spoken(turn["content"], kind, https)
        shown.append(f'<li class="turn" data-role="{role}"><p class="role">{role}</p>{content}</li>')
    return f'<ol class="chat">{"".join(shown)}</ol>'


def _spoken(content: object, kind: str, https: bool = False) -> str:
    """Return what a turn says; a list holds its parts, of which those with a text are that text."""
    if isinstance(content, list):
        texts = (part.get("text") if isinstance(part, dict) else None for part in content)
        parts = zip(content, texts, strict=True)
        return "".join(_spoken(text if isinstance(text, str) else part, kind, https) for part, text in parts)
    return _written("" if content is None else content, kind, https)


def display_of(study: Study, address: Callable[[str], str]) -> Display:
    """Return how a study's items are shown: kept in the study, so that every page of it looks the same."""
    formats = json.loads(study.setting("page_formats") or "{}")
    media = study.setting("page_media")
    https = study.setting("page_images") == "https"
    named_here = study.setting("page_media_of") == _identity(study)
    if media and named_here:
        folder = Path(media)
    else:
        folder = study.media
    return Display(media=folder, address=address, formats=formats, https=https)


def _identity(study: Study) -> str:
    """Return what distinguishes this file of a study from a copy, which may be from another person.

    A folder of media was named for this computer: a copy elsewhere could name a private folder there, whose
    pictures its annotators would see.
    """
    status = study.database.path.stat()
    return f"{status.st_dev}:{status.st_ino}"


def save_display(
    study: Study,
    formats: Mapping[str, str] | None = None,
    media: Path | None = None,
    images: str | None = None,
) -> None:
    """Save how a study's columns are shown, the folder of its media, and whose pictures are shown.

    `images`: `study` for those of the folder alone, `https` for those at such addresses too.
    """
    for column, kind in (formats or {}).items():
        if kind not in DISPLAY_FORMATS:
            problem = f"unknown format for column {column!r}"
            allowed = suggest_names(kind, DISPLAY_FORMATS)
            raise InputError(problem, given=repr(kind), allowed=allowed)
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
            connection.save_settings(page_media=str(media.resolve()), page_media_of=_identity(study))


def media_address(path: str) -> str:
    """Return the address of a medium, relative to the page's."""
    return f"media/{quote(path)}"


def embedded(study: Study) -> Callable[[str], str]:
    """Return what gives an image or a sound as a `data:` address."""
    media = display_of(study, str).media

    def address(path: str) -> str:
        media_folder = media_file(media, path)
        if media_folder is None:
            return ""
        content = base64.b64encode(media_folder.read_bytes()).decode()
        return f"data:{MEDIA_TYPES[media_folder.suffix.lower()]};base64,{content}"

    return address


@cache
def asset(name: str) -> str:
    """Return one of the page's files."""
    return (Path(__file__).parent / "static" / name).read_text(encoding="utf-8")


def html_page(title: str, head: str, home: str, inside: str = "") -> str:
    """Return a whole page, with what comes into its head."""
    if home != "text":
        inside += "<noscript><p>This page requires JavaScript.</p></noscript>"
    return Template(asset("page.html")).substitute(title=title, head=head, home=home, inside=inside)


def join_scripts(*names: str) -> str:
    """Return several scripts as one module, without the imports of each other."""
    return "\n".join(re.sub(r"(?m)^import \{.*$\n", "", asset(name)) for name in names)


SIDES = ("A", "B")
# Setting of the study: whether a choice that answers all questions is submitted at once.
SUBMIT_ON_CHOICE = "page_submit_on_choice"


def question_view(question: StudyQuestion) -> JsonDict:
    """Return a question as the page has it."""
    pair = question.kind == PAIR
    names = (*SIDES, TIE) if pair else tuple(choice.name for choice in question.choices)
    return {
        "name": question.name,
        "text": question.text,
        "kind": question.kind,
        "choices": [
            {"value": name, "label": "Tie" if pair and name == TIE else name, "key": choice.key}
            for name, choice in zip(names, question.choices, strict=True)
        ],
        "ends": question.ends,
        "when": question.when,
    }


def form_view(study: Study) -> JsonDict:
    """Return all questions and the rubric as the page has them."""
    first = study.form.first
    return {
        "questions": [question_view(question) for question in study.form.questions],
        "rubric": markdown(first.rubric) if first.rubric else "",
        "rubric_version": first.rubric_version,
        "submit_on_choice": study.setting(SUBMIT_ON_CHOICE) == "yes",
    }


def item_view(item: Item, form: Form, display: Display) -> JsonDict:
    """Return one item as the page has it."""
    pair = form.pair or ()
    named = zip(SIDES, item.sides or (), strict=False)
    return {
        "id": item.id,
        "position": item.position,
        "fields": [display.show(name, value) for name, value in item.payload.items() if name not in pair],
        "sides": [{**display.show(column, item.payload.get(column)), "name": side} for side, column in named],
        "answer": None if item.answer is None else answer_view(item.answer, item, form),
        "flagged": item.flagged,
    }


def answer_view(answer: Answer, item: Item, form: Form) -> JsonDict:
    """Return an answer as the page has it: by question, in the page's words, without saying whose it is."""
    shown: JsonDict = dict(form.answers(answer.value))
    for question in form.questions:
        value = shown.get(question.name)
        if question.kind == PAIR and item.sides and value in item.sides:
            shown[question.name] = SIDES[item.sides.index(str(value))]
        elif question.kind in MULTIPLE_CHOICE_KINDS and value is not None:
            shown[question.name] = json.loads(value)
    return {"status": answer.status, "value": shown or None, "note": answer.note, "seq": answer.seq}


def state(study: Study, annotator: str, display: Display, _: object = None) -> JsonDict:
    """Return what a page needs when it opens."""
    return {
        "study": study.id,
        "annotator": annotator,
        "name": study.names.get(annotator, annotator),
        "form": form_view(study),
        "adjudicator": annotator in study.adjudicators,
        **_annotator_state(study, annotator, display),
    }


def _annotator_state(study: Study, annotator: str, display: Display) -> JsonDict:
    """Return the item to label now, None if there is none, those after it, and the progress."""
    form = study.form
    shown = [item_view(item, form, display) for item in study.next_items(annotator, ahead=ITEMS_AHEAD)]
    return {
        "item": shown[0] if shown else None,
        "ahead": shown[1:],
        "progress": study.progress(annotator).to_dict(),
    }


def view_assigned_item(study: Study, annotator: str, display: Display, item: object) -> JsonDict:
    """Return an item that this annotator was given before."""
    return {"item": item_view(study.item(annotator, str(item)), study.form, display)}


def answer_history(study: Study, annotator: str, _: Display, before: object) -> JsonDict:
    """Return the items that this annotator answered, newest first; those before a line of the journal."""
    line = "0" if before is None else str(before)
    # Longer numbers may not fit into the 64 bits of a column of SQLite.
    if not (line.isascii() and line.isdigit() and len(line) < 18):
        raise InputError("'before' must be the number of a line of the journal", given=repr(before)[:60])
    answers = study.history(annotator, before=None if before is None else int(line))
    return {"answers": [{"item": answer.item, "seq": answer.seq} for answer in answers]}


def open_disagreements(study: Study, annotator: str, display: Display, _: object = None) -> JsonDict:
    """Return items that wait for a decision, with their answers; none for whoever does not decide.

    `mine` is how many are assigned to this annotator.
    """
    form, (mine, disagreements) = study.form, study.assigned_disagreements(annotator)
    shown = []
    for entry in disagreements:
        item = structs.replace(entry.item, sides=sides(form, entry.item.id, annotator, study.id))
        answers = [answer_view(answer, item, form) for answer in entry.answers]
        shown.append({**item_view(item, form, display), "answers": answers})
    return {"disagreements": shown, "mine": mine}


def perform(study: Study, annotator: str, display: Display, body: object) -> JsonDict:
    """Save what a page did; return the receipt, the next item and the progress."""
    action = page_action(body)
    form = study.form
    value: Any = action.value
    if form.pair and value is not None:
        order = sides(form, str(action.item), annotator, study.id) or ()
        columns = dict(zip((*SIDES, TIE), (*order, TIE), strict=True))
        if isinstance(value, dict):
            named = value
        else:
            named = {form.first.name: value}
        pairs = {question.name for question in form.questions if question.kind == PAIR}
        value = {name: _column_of(columns, side) if name in pairs else side for name, side in named.items()}
    receipt = study.save_action(
        annotator, action.action, action.item, value, ahead=ITEMS_AHEAD, **action.details
    )
    return {"receipt": receipt.to_dict(), **_annotator_state(study, annotator, display)}


def _column_of(columns: Mapping[str, str], side: Any) -> str:
    """Return the column that a side of a pair shows."""
    if side not in columns:
        raise InputError("unknown side", given=repr(side)[:60], allowed=", ".join(columns))
    return columns[side]


# The requests of a page and the functions that answer them; the last argument is what the page sends.
HANDLERS: dict[str, Callable[[Study, str, Display, Any], JsonDict]] = {
    "state": state,
    "item": view_assigned_item,
    "trail": answer_history,
    "disagreements": open_disagreements,
    "act": perform,
}


def error_kind(error: StratalError) -> str:
    """Return the kind of an error as a page distinguishes them: a `StudyError`'s own, or `input`."""
    if isinstance(error, StudyError):
        return error.kind
    return "input"
