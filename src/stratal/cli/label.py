"""`stratal label`: the page on which annotators label a study."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stratal.cli import options as o
from stratal.cli.output import print_json, print_text
from stratal.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from stratal.study.web.server import Place

OPEN = """Warning: other computers can reach this page, and what they send is not encrypted: whoever listens
on the network can read labels and links. Better leave --host out, put a proxy with TLS before the page
(caddy reverse-proxy --from labels.example.org --to 127.0.0.1:{port}), and say where it is
(--address https://labels.example.org)."""


def label(
    study: o.Study,
    port: Annotated[int, typer.Option(help="Port to listen at; 0 takes a free one.")] = 8000,
    host: Annotated[
        str,
        typer.Option(help="Address of this computer to listen at; any but the default lets others in."),
    ] = "127.0.0.1",
    address: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where annotators reach the page, if that is another: https://labels.example.org of a proxy "
            "with TLS, http://192.168.1.5:8000 in a network.",
        ),
    ] = None,
    format: Annotated[  # noqa: A002
        str | None,
        typer.Option(
            metavar="COL=FORMAT,…",
            help="How columns are shown: text, markdown, html, json, chat, image or audio; remembered.",
            show_default="text; images, audio, chats and JSON where there are such",
        ),
    ] = None,
    media: Annotated[
        Path | None,
        typer.Option(
            help="Folder of images and audio; kept in the study.", show_default="media in the study"
        ),
    ] = None,
    new_links: Annotated[bool, typer.Option("--new-links", help="Make all earlier links invalid.")] = False,
    json: o.Json = False,
) -> None:
    """Serve the page on which annotators label, until Ctrl-C; prints one secret link for each of them.

    Whoever has a link labels as that annotator. Links stay the same when the page is served again, unless
    --new-links is given. Every answer is on disk before the next item is shown.
    """
    try:
        from stratal.study.web.content import keep_look
        from stratal.study.web.server import Place, serve
    except ImportError as error:
        raise MissingExtraError(error.name or "starlette", extra="web") from None
    from stratal.study import open_study

    place = Place(host=host, port=port, address=address)

    def ready(reached: str, links: dict[str, str]) -> None:
        if json:
            print_json({"study": str(study), "address": reached, "links": links})
        else:
            _print_links(study, place, links)
        sys.stdout.flush()

    with open_study(study) as opened:
        keep_look(opened, _formats(format), media)
        names = opened.names
        serve(
            opened,
            place,
            fresh=new_links,
            ready=lambda reached, links: ready(
                reached, {_named(who, names): link for who, link in links.items()}
            ),
        )


def _named(who: str, names: dict[str, str]) -> str:
    return f"{who} ({names[who]})" if who in names else who


def _formats(text: str | None) -> dict[str, str]:
    """Return column → format of `COL=FORMAT,…`."""
    found = {}
    for entry in o.listed(text):
        column, mark, kind = entry.rpartition("=")
        if not mark:
            raise InputError("--format is not understood", given=repr(entry), allowed="COL=FORMAT,…")
        found[column] = kind
    return found


def _print_links(study: Path, place: Place, links: dict[str, str]) -> None:
    width = max(map(len, links), default=0)
    if place.is_open:
        print_text(" ".join(OPEN.split()).format(port=place.port), "")
    print_text(f"{study}: one link for each annotator. Whoever has a link labels under that name.", "")
    print_text(*(f"  {name:<{width}}  {link}" for name, link in links.items()))
    print_text("", "Ctrl-C stops the page; nothing is lost.")
