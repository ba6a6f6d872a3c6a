"""Commands on a study: the page on which people label, its progress, people, rounds and soundness."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import structs

from stratal.cli.command import command, option
from stratal.cli.options import ConfidenceLevel, Number, Output, Reading, Study, Text, Whole
from stratal.cli.output import Result, print_json, print_text, progress
from stratal.cli.parsing import joined, listed, place, text_of
from stratal.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    import stratal.study.study as studies
    from stratal.study.web.server import Place

OPEN = """Warning: other computers can reach this page, and what they send is not encrypted: whoever listens
on the network can read labels and links. Better leave --host out, put a proxy with TLS before the page
(caddy reverse-proxy --from labels.example.org --to 127.0.0.1:{port}), and say where it is
(--address https://labels.example.org)."""

UNSOUND = 3
"""Exit status for a study or a copy with problems; 1 is a reader that left, 2 a mistake."""


@command()
def label(
    study: Study,
    port: Annotated[int, option("Port to listen at; 0 takes a free one.")] = 8000,
    host: Annotated[
        str, option("Address of this computer to listen at; any but the default lets others in.")
    ] = "127.0.0.1",
    address: Annotated[
        Text,
        option(
            "Where annotators reach the page, if that is another: https://labels.example.org of a proxy "
            "with TLS, http://192.168.1.5:8000 in a network.",
            "URL",
        ),
    ] = None,
    format: Annotated[  # noqa: A002
        Text,
        option(
            "How columns are shown: text, markdown, html, json, chat, image or audio; remembered.",
            "COL=FORMAT,…",
            shown="text; images, audio, chats and JSON where there are such",
        ),
    ] = None,
    media: Annotated[
        Path | None,
        option("Folder of images and audio; kept in the study.", shown="media in the study"),
    ] = None,
    new_links: Annotated[bool, option("Make all earlier links invalid.")] = False,
    json: bool = False,
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

    served = Place(host=host, port=port, address=address)
    with open_study(study) as opened:
        keep_look(opened, _formats(format), media)
        names = opened.names

        def ready(reached: str, links: dict[str, str]) -> None:
            named = {f"{who} ({names[who]})" if who in names else who: link for who, link in links.items()}
            if json:
                print_json({"study": str(study), "address": reached, "links": named})
            else:
                _print_links(study, served, named)
            sys.stdout.flush()

        serve(opened, served, fresh=new_links, ready=ready)


def _formats(text: str | None) -> dict[str, str]:
    """Return column → format of `COL=FORMAT,…`."""
    found = {}
    for entry in listed(text):
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


@command()
def status(study: Study, confidence_level: ConfidenceLevel = 0.95) -> Result:
    """Show a study's progress, agreement, times, nonresponse and interim estimate.

    The anytime-valid interval holds at every moment at once: one may look at it again and again and stop when
    it is narrow enough.
    """
    from stratal.report import status_page
    from stratal.study.opening import open_study
    from stratal.study.status import study_status

    with progress("counting"), open_study(study, reading=True) as opened:
        found = study_status(opened, confidence_level=confidence_level)
    stop, items = found["stop"], found["nonresponse"]
    if stop["enough"]:
        then = "estimate"
    elif items["open"] or not items["labelled"]:
        then = "label"
    else:
        then = "extend" if stop["half_width"] else "estimate"
    return Result(found, status_page, (then, study))


@command()
def extend(
    study: Study,
    additional: Annotated[
        Whole, option("Units to add.", shown="as many as the study's --until needs")
    ] = None,
    until: Annotated[
        Number,
        option("Stop when the anytime-valid interval's half-width is as small as this; 0: never."),
    ] = None,
    without_labels: Annotated[bool, option("Only a larger budget: look at no label.")] = False,
    file: Annotated[
        Path | None, option("Where the predictions are now.", "FILE", shown="where they were")
    ] = None,
) -> Result:
    """Draw more items for a study, and give them to its annotators, whether or not a server is running.

    Every item that was drawn stays drawn. The labels so far say where new ones help most. With --until the
    study stops giving out items once the interval is narrow enough; a study that was made so is extended by
    as many items as the labels say are needed.
    """
    from stratal.study.opening import open_study
    from stratal.study.rounds import grow, units_needed
    from stratal.study.study import until as stop_at

    with open_study(study) as opened:
        before = opened.sample().size
        wanted = units_needed(opened) if additional is None and until is None else additional
        if wanted is not None and (wanted or additional is not None):
            reading = read_again(opened, file)
            with progress("reading and drawing"):
                by_labels = False if without_labels else None
                grow(opened, wanted, population=reading.population(), by_labels=by_labels)
        enough = opened.setting("enough") == "yes" if until is None else stop_at(opened, until or None)
        larger = opened.sample()
    found = {
        "study": str(study),
        "n": larger.size,
        "new": larger.size - before,
        "round": int(larger.round.max()),
        "enough": enough,
    }
    return Result(
        found,
        f"Round {found['round']}: {found['new']:,} more items, {found['n']:,} in all.",
        "The interval is as narrow as was asked for: labelling may stop." if enough else None,
        ("status", study),
    )


def read_again(study: studies.Study, file: Path | None) -> Reading:
    """Return how the predictions of a study were read, perhaps from where they are now."""
    import json

    from stratal.population.declaration import fitting

    known: dict[str, Any] = json.loads(study.setting("reading") or "{}")
    if not known and file is None:
        raise InputError("this study does not know its file of predictions", action="Name it with --file.")
    sample = study.sample()
    own = {"id": sample.id_name, "proxy": joined(*sample.proxy_names), "predicted": sample.predicted}
    known = {**own, **known}
    # What the sample holds is compared, and so must be read; a pattern may name it already.
    for name, held in (("groups", sample.groups), ("show", sample.shown)):
        given = listed(known.get(name))
        lacking = [column for column in held if column not in fitting(given, tuple(held))]
        known[name] = joined(*given, *lacking) or None
    reading = Reading(**{**known, "file": place(known.get("file", "."))}).with_columns_of(sample.estimand)
    return reading if file is None else structs.replace(reading, file=file)


@command()
def team(
    study: Study,
    add: Annotated[Text, option("Let these people label too.", "NAME,…")] = None,
    set_aside: Annotated[Text, option("Leave this annotator's labels out; none is deleted.")] = None,
    take_back: Annotated[Text, option("Take labels that were set aside back in.")] = None,
    reason: Annotated[str, option("Why, for the journal.")] = "",
    rubric: Annotated[Path | None, option("File with a new version of how to judge (Markdown).")] = None,
) -> Result:
    """Show who labels a study; add people, set an annotator's labels aside or take them back."""
    from stratal.study.opening import open_study

    with open_study(study) as opened:
        for name in listed(add):
            opened.add_annotator(name)
        if set_aside is not None:
            opened.set_aside(set_aside, reason=reason)
        if take_back is not None:
            opened.take_back(take_back, reason=reason)
        if rubric is not None:
            opened.set_rubric(text_of(rubric))
        people, aside = list(opened.annotators), opened.aside()
        found = {
            "study": str(study),
            "annotators": people,
            "adjudicators": list(opened.adjudicators),
            "set_aside": aside,
            "rubric_version": opened.question.rubric_version,
        }
    return Result(found, [f"{name} (set aside)" if name in aside else name for name in people])


@command()
def check(
    study: Study,
    head: Annotated[
        Text, option("Hash that an earlier check printed; it must still be in the journal.")
    ] = None,
) -> Result:
    """Check a study: the journal's chain of hashes, its ids against the sample, its counts.

    Exit status 3 if anything is wrong. Write the last hash down elsewhere: it proves later that nothing
    before it was changed.
    """
    from stratal.study.opening import check_study, open_study

    with progress("checking"), open_study(study, reading=True) as opened:
        return _checked(study, check_study(opened, known_head=head))


@command()
def backup(study: Study, output: Output) -> Result:
    """Copy a study while people go on labelling, and check the copy. The copy is a study itself.

    Exit status 3 if anything is wrong with it. The annotators' links are not copied: `stratal label` makes
    new ones for the copy.
    """
    from stratal.study.opening import backup_study, open_study

    with progress("copying"), open_study(study) as opened:
        return _checked(output, backup_study(opened, output))


def _checked(study: Path, found: Any) -> Result:
    from stratal.report import check_page

    described = {"study": str(study), "sound": found.sound, **found.to_dict()}
    return Result(described, check_page, status=0 if found.sound else UNSOUND)
