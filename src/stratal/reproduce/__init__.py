"""The papers, one command each: tables, figures, and a page of what is printed beside what comes out here."""

from stratal.reproduce.page import Claim, Page
from stratal.reproduce.papers import PAPERS, reproduce

__all__ = ["PAPERS", "Claim", "Page", "reproduce"]
