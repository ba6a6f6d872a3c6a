"""The meaning of a table's columns and the estimand: declared once, stored with every file."""

from stratal.question.question import NOT_COMPARED as NOT_COMPARED
from stratal.question.question import Outcome as Outcome
from stratal.question.question import Question as Question
from stratal.question.roles import ROLES as ROLES
from stratal.question.scores import Score as Score
