"""The study: a folder in which annotators label a sample, and nothing that they say is lost.

`create_study` makes the folder from a sample and a question; `open_study` opens it; a `Study` gives items to
annotators, keeps what they say in an append-only journal, and hands the labels to `stratal.estimate`.
"""

from stratal.study.database import StudyError
from stratal.study.opening import backup_study, check_study, create_study, open_study
from stratal.study.question import Form, Question
from stratal.study.status import study_status
from stratal.study.study import Study, anytime_interval, estimate_study, grow, until
from stratal.study.web.notebook import annotate

__all__ = [
    "Form",
    "Question",
    "Study",
    "StudyError",
    "annotate",
    "anytime_interval",
    "backup_study",
    "check_study",
    "create_study",
    "estimate_study",
    "grow",
    "open_study",
    "study_status",
    "until",
]
