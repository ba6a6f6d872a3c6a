"""Reports: a result's plain dict becomes a page, and a page becomes text, HTML or a figure."""

from stratal.report.document import WRITERS, report_html
from stratal.report.estimates import (
    answer_sentence,
    estimate_page,
    estimates_table,
    leaderboard_table,
    value_with_interval,
)
from stratal.report.method import described_method
from stratal.report.pages import (
    check_page,
    handover_page,
    inspection_page,
    plan_page,
    simulation_page,
    status_page,
    study_page,
    taken_page,
)
from stratal.report.plots import Bars, Intervals, Plotted
from stratal.report.sections import new_version_page
from stratal.report.text import Page, Printed, Table, Tabular, noted, page_text, plain, plain_dict

__all__ = [
    "WRITERS",
    "Bars",
    "Intervals",
    "Page",
    "Plotted",
    "Printed",
    "Table",
    "Tabular",
    "answer_sentence",
    "check_page",
    "described_method",
    "estimate_page",
    "estimates_table",
    "handover_page",
    "inspection_page",
    "leaderboard_table",
    "new_version_page",
    "noted",
    "page_text",
    "plain",
    "plain_dict",
    "plan_page",
    "report_html",
    "simulation_page",
    "status_page",
    "study_page",
    "taken_page",
    "value_with_interval",
]
