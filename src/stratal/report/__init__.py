"""Reports: a result's plain dict becomes a page, and a page becomes text, HTML or a figure."""

from stratal.report.answers import answer_sentence
from stratal.report.document import WRITERS, report_html
from stratal.report.estimates import estimate_page, estimates_table, value_with_interval
from stratal.report.inspections import handover_page, inspection_page
from stratal.report.leaderboard import leaderboard_table
from stratal.report.method import described_method
from stratal.report.plain_values import plain, plain_dict
from stratal.report.plans import plan_page
from stratal.report.plots import Bars, Intervals, Plotted
from stratal.report.printed import Printed, Tabular
from stratal.report.regressions import regression_page
from stratal.report.schemas import command_schema
from stratal.report.simulations import simulation_page
from stratal.report.studies import check_page, status_page, study_page, taken_page
from stratal.report.text import Page, Table, noted, page_text
from stratal.report.versions import new_version_page

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
    "command_schema",
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
    "regression_page",
    "report_html",
    "simulation_page",
    "status_page",
    "study_page",
    "taken_page",
    "value_with_interval",
]
