"""The labelling page in a notebook: the kernel answers its requests instead of a server."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from stratal.designs.sample import Sample, require_sample
from stratal.errors import InputError, StratalError, optional_import
from stratal.protocols import JsonDict, JsonMapping
from stratal.study.database import DATABASE
from stratal.study.opening import create_study, open_study
from stratal.study.question import DEFAULT_QUESTION, StudyQuestion
from stratal.study.study import Study
from stratal.study.web import content
from stratal.study.web.content import HANDLERS, Display


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
        opened_study = sample
    elif isinstance(sample, str | Path):
        opened_study = open_study(sample)
    elif not (folder / DATABASE).is_file():
        require_sample(sample, "annotate")
        if not isinstance(question, StudyQuestion):
            question = StudyQuestion.of_choices(question, choices)
        opened_study = create_study(folder, sample, question, annotators=[annotator])
    else:
        opened_study = _open_study_of_sample(folder, require_sample(sample, "annotate"))
    if annotator not in opened_study.people:
        annotator = opened_study.add_annotator(annotator)
    # Without a server, the page contains images and sounds as `data:` addresses.
    display = content.read_display(opened_study, content.data_addresses(opened_study))
    # A damaged study cannot be estimated, so that its items must not be labelled.
    with opened_study.verified():
        pass

    class Annotation(anywidget.AnyWidget):
        _esm = content.join_scripts("parts.js", "annotate.js", "notebook.js")
        _css = content.read_page_file("page.css")

        def labels(self) -> Any:
            """Return the current labels of the study."""
            return opened_study.labels()

    widget = Annotation()
    widget.study = opened_study

    def reply(sender: Any, message: object, _buffers: object) -> None:
        sender.send(reply_to_message(opened_study, annotator, display, message))

    widget.on_msg(reply)
    return widget


def _open_study_of_sample(folder: Path, sample: Sample) -> Study:
    """Return the study in a folder, which must be of this sample."""
    study = open_study(folder)
    if study.sample().ids.tolist() != sample.ids.tolist():
        study.close()
        action = "Give another folder (study=…), or the study itself: annotate('STUDY')."
        raise InputError(f"{folder} contains the study of another sample", action=action)
    return study


def reply_to_message(study: Study, annotator: str, display: Display, message: object) -> JsonDict:
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
