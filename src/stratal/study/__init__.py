"""The study: a folder in which annotators label a sample, and no answer is ever lost.

`create_study` creates the folder from a sample and a question, and `open_study` opens it. A `Study` assigns
items to annotators, stores their answers in an append-only journal, and returns the labels for
`stratal.estimate`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stratal.study.database import StudyError as StudyError
    from stratal.study.interim import estimate_study as estimate_study
    from stratal.study.interim import extend_study as extend_study
    from stratal.study.interim import set_half_width as set_half_width
    from stratal.study.opening import backup_study as backup_study
    from stratal.study.opening import check_study as check_study
    from stratal.study.opening import create_study as create_study
    from stratal.study.opening import open_study as open_study
    from stratal.study.question import Form as Form
    from stratal.study.question import StudyQuestion as StudyQuestion
    from stratal.study.status import study_status as study_status
    from stratal.study.study import Study as Study
    from stratal.study.study import anytime_interval as anytime_interval
    from stratal.study.web.notebook import annotate as annotate

# Module → its public names. They are imported on first use, because a command that only searches for a study
# needs few modules.
_NAMES = {
    "database": "StudyError",
    "opening": "backup_study check_study create_study open_study",
    "question": "Form StudyQuestion",
    "status": "study_status",
    "study": "Study anytime_interval",
    "interim": "estimate_study extend_study set_half_width",
    "web.notebook": "annotate",
}
__all__ = sorted(" ".join(_NAMES.values()).split())


def __getattr__(name: str) -> Any:
    for module, names in _NAMES.items():
        if name in names.split():
            return getattr(import_module(f"stratal.study.{module}"), name)
    raise AttributeError(f"module 'stratal.study' has no attribute {name!r}")
