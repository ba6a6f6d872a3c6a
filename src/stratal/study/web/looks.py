"""How a study's items are shown: kept in the study, so that every page of it looks the same."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote

from stratal.errors import InputError
from stratal.study.study import Study
from stratal.study.web.content import MEDIA_TYPES, Look, checked_formats, media_file

FORMATS, MEDIA = "page_formats", "page_media"
"""Settings of the study: how its columns are shown, and where its images and audio are."""


def look_of(study: Study, address: Callable[[str], str]) -> Look:
    """Return how a study's items are shown.

    Examples
    --------
    >>> look_of.__name__
    'look_of'
    """
    formats = json.loads(study.setting(FORMATS) or "{}")
    media = study.setting(MEDIA)
    return Look(media=Path(media) if media else study.media, address=address, formats=formats)


def keep_look(study: Study, formats: Mapping[str, str] | None = None, media: Path | None = None) -> None:
    """Save how a study's columns are shown, and the folder of its images and audio.

    Raises
    ------
    InputError
        For a format or a folder that does not exist.

    Examples
    --------
    >>> keep_look.__name__
    'keep_look'
    """
    if formats:
        known = json.loads(study.setting(FORMATS) or "{}")
        study.keep(FORMATS, json.dumps({**known, **checked_formats(formats)}, ensure_ascii=False))
    if media is not None:
        if not media.is_dir():
            raise InputError(
                f"{media}: no such folder of images and audio",
                action="Give the folder that the items' files are in, with --media.",
            )
        study.keep(MEDIA, str(media.resolve()))


def media_address(path: str) -> str:
    """Return the address of a medium, beside the page's own.

    Examples
    --------
    >>> media_address("cats/a b.png")
    'media/cats/a%20b.png'
    """
    return f"media/{quote(path)}"


def embedded(study: Study) -> Callable[[str], str]:
    """Return what gives an image or a sound of a study as a `data:` address.

    Examples
    --------
    >>> embedded.__name__
    'embedded'
    """
    media = look_of(study, str).media

    def address(path: str) -> str:
        found = media_file(media, path)
        if found is None:
            return ""
        content = base64.b64encode(found.read_bytes()).decode()
        return f"data:{MEDIA_TYPES[found.suffix.lower()]};base64,{content}"

    return address
