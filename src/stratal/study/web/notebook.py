"""The page in a notebook: the same script and the same keys, the kernel in the place of the server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stratal.designs.asked import require_sample
from stratal.errors import InputError, MissingExtraError, StratalError, names_mistyped
from stratal.study.database import DATABASE
from stratal.study.faults import StudyError
from stratal.study.opening import create_study, open_study
from stratal.study.question import Question
from stratal.study.study import Study
from stratal.study.web import actions
from stratal.study.web.assets import asset, joined
from stratal.study.web.content import Look
from stratal.study.web.looks import embedded, look_of

if TYPE_CHECKING:
    from stratal.designs import Sample


@names_mistyped
def annotate(
    sample: Sample | Study | str | Path,
    *,
    study: str | Path = "study",
    question: str | Question = "Is the answer correct?",
    choices: Iterable[str] = ("Pass", "Fail"),
    annotator: str = "me",
) -> Any:
    """Label a sample in a notebook; the labels are saved in a study folder, as those of the page are.

    Parameters
    ----------
    sample : Sample, Study, str or Path
        What to label: a sample, for which the folder is made where it is not there yet; or a study or its
        folder.
    study : str or Path
        Folder of the sample's study.
    question : str or Question
        Of a new study.
    choices : iterable of str
        Of a new study whose question is a text.
    annotator : str
        Who labels; somebody new is let into the study.

    Returns
    -------
    AnyWidget
        Shown by the notebook. Its `labels()` are what `stratal.estimate(sample, …)` takes, its `study` is the
        open study.

    Raises
    ------
    InputError
        If the folder holds the study of another sample, and for what is neither sample nor study.
    MissingExtraError
        If anywidget is not installed.

    Examples
    --------
    >>> import stratal, tempfile
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.5, 0.9], ids=["a", "b", "c"])
    >>> sample = stratal.SimpleRandom(budget=2).draw(population, seed=7)
    >>> widget = annotate(sample, study=tempfile.mkdtemp() + "/study")
    >>> widget.study.next_item("me").position
    1
    """
    try:
        import anywidget
    except ImportError:
        raise MissingExtraError("anywidget", extra="notebook") from None
    opened = _opened(sample, Path(study), question, choices, annotator)
    if annotator not in (*opened.annotators, *opened.adjudicators):
        annotator = opened.add_annotator(annotator)
    look = look_of(opened, embedded(opened))
    with opened.verified():  # nobody shall label what no estimate will take
        pass

    class Annotation(anywidget.AnyWidget):
        _esm = joined("parts.js", "annotate.js", "notebook.js")
        _css = asset("page.css")

        def labels(self) -> Any:
            """Return the study's present labels."""
            return opened.labels()

    widget = Annotation()
    widget.study = opened
    widget.on_msg(lambda shown, message, _: shown.send(answer(opened, annotator, look, message)))
    return widget


def answer(study: Study, annotator: str, look: Look, message: Any) -> dict[str, Any]:
    """Return what the kernel says to a message of the page: an answer, or what is wrong.

    Examples
    --------
    >>> answer(None, "me", None, {"id": "1", "what": "nothing"})["error"]["kind"]
    'input'
    """
    asked: Mapping[str, Any] = message if isinstance(message, dict) else {}
    try:
        said = {"answer": _ask(study, annotator, look, str(asked.get("what")), asked.get("body"))}
    except StratalError as error:
        kind = error.kind if isinstance(error, StudyError) else "input"
        said = {"error": {"kind": kind, "message": str(error)}}
    return {"id": asked.get("id"), **said}


def _ask(study: Study, annotator: str, look: Look, what: str, body: Any) -> dict[str, Any]:
    if what == "state":
        return actions.state(study, annotator, look)
    if what == "item":
        return actions.given_item(study, annotator, look, body)
    if what == "trail":
        return actions.trail(study, annotator, body if isinstance(body, int) else None)
    if what == "disagreements":
        return actions.open_disagreements(study, annotator, look)
    if what == "act":
        return actions.perform(study, annotator, look, body)
    raise InputError("the page asks for something unknown", given=repr(what[:60]))


def _opened(
    sample: Sample | Study | str | Path,
    folder: Path,
    question: str | Question,
    choices: Iterable[str],
    annotator: str,
) -> Study:
    if isinstance(sample, Study):
        return sample
    if isinstance(sample, str | Path):
        return open_study(sample)
    require_sample(sample, "annotate")
    if not (folder / DATABASE).is_file():
        asked = question if isinstance(question, Question) else Question.of_choices(question, choices)
        return create_study(folder, sample, asked, annotators=[annotator])
    found = open_study(folder)
    if found.sample().ids.tolist() != sample.ids.tolist():
        found.close()
        raise InputError(
            f"{folder}: holds the study of another sample",
            action="Give another folder (study=…), or the study itself: annotate('STUDY').",
        )
    return found
