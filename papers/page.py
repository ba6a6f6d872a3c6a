"""A page that compares a paper with this package: claims, tables and figures, written as Markdown."""

from __future__ import annotations

import csv
import hashlib
import importlib.metadata
import json
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import stratal
from papers.claims import Claim, Number
from papers.panels import Panel, draw_lines

CLAIMS_HEADER = ("where", "the paper says", "data", "we get", "off by", "±", "allowed", "agrees")


@dataclass(slots=True, kw_only=True)
class Page:
    """What a reproduction found, put together piece by piece and written at the end.

    Parameters
    ----------
    title : str
    directory : path
        Where figures and tables go.
    opening : list of str
        Paragraphs: what was run on which data.
    data : str
        Name of the data of claims that name none.
    seed : int
        That the numbers come from.

    Examples
    --------
    >>> page = Page(title="A paper", directory=Path("."))
    >>> page.claim(where="§1", says="a", found="b", numbers=[Number(value=1.0)])
    >>> page.markdown().splitlines()[0]
    '# A paper'
    """

    title: str
    directory: Path
    opening: list[str] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    sections: list[str] = field(default_factory=list)
    data: str = ""
    seed: int = 0
    files: list[Path] = field(default_factory=list)
    tables: dict[str, list[list[Any]]] = field(default_factory=dict)

    def claim(
        self,
        *,
        where: str,
        says: str,
        found: str,
        numbers: Sequence[Number],
        data: str = "",
        sets: int | None = None,
    ) -> None:
        """Add a row of "paper says / we get"; see `Claim`."""
        data = data or self.data
        claim = Claim(where=where, says=says, found=found, numbers=tuple(numbers), data=data, sets=sets)
        self.claims.append(claim)

    def add_table(self, title: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Add a table, which is also written as a file of comma-separated values."""
        self.tables[file_name(title)] = [list(header), *(list(row) for row in rows)]
        self.sections.append(f"## {title}\n\n{markdown_table(header, rows)}")

    def add_figure(self, title: str, path: Path, words: str = "") -> None:
        """Add a figure that has been drawn into the directory."""
        self.files.append(path)
        text = f"## {title}\n\n![{title}]({path.name})"
        self.sections.append(f"{text}\n\n{words}" if words else text)

    def draw(
        self, title: str, panels: Sequence[Panel], file: str, *, columns: int = 3, words: str = ""
    ) -> None:
        """Draw panels of lines into the directory, and add the figure."""
        self.add_figure(title, draw_lines(panels, self.directory / file, columns=columns), words)

    def markdown(self) -> str:
        """Return the page."""
        parts = [f"# {self.title}", *self.opening, self.stamp()]
        if self.claims:
            parts += ["## The paper says, we get", self.claims_table()]
        return "\n\n".join([*parts, *self.sections]) + "\n"

    def claims_table(self) -> str:
        """Return the rows of "paper says / we get"."""
        return markdown_table(CLAIMS_HEADER, [claim.row() for claim in self.claims])

    def stamp(self) -> str:
        """Return what the numbers were made with, and their hash."""
        return f"{made_with(self.seed)} Numbers: `{digest(self.numbers())}`."

    def numbers(self) -> dict[str, Any]:
        """Return what is stored: claims with every number that they rest on, and the tables' cells."""
        tables = {name: [[str(cell) for cell in row] for row in rows] for name, rows in self.tables.items()}
        return {"claims": [claim.to_dict() for claim in self.claims], "tables": tables}

    def write(self) -> Path:
        """Write `page.md`, `numbers.json` and a CSV file per table, and return the page's path."""
        self.directory.mkdir(parents=True, exist_ok=True)
        for name, rows in self.tables.items():
            table = self.directory / f"{name}.csv"
            with table.open("w", newline="", encoding="utf-8") as opened:
                csv.writer(opened).writerows(rows)
            self.files.append(table)
        path = self.directory / "page.md"
        path.write_text(self.markdown(), encoding="utf-8")
        self.files += [path, write_numbers(self.directory / "numbers.json", self.numbers())]
        return path

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dict."""
        return {
            "title": self.title,
            "claims": [claim.to_dict() for claim in self.claims],
            "files": [str(path) for path in self.files],
        }


def write_numbers(path: Path, numbers: dict[str, Any]) -> Path:
    """Write stored numbers as JSON."""
    path.write_text(json.dumps(numbers, indent=1, ensure_ascii=False, allow_nan=False) + "\n", "utf-8")
    return path


def digest(numbers: dict[str, Any]) -> str:
    """Return 12 hexadecimal digits of the SHA-256 of stored numbers.

    Examples
    --------
    >>> digest({"claims": [], "tables": {}})
    'e2f8aad144a9'
    """
    text = json.dumps(numbers, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def file_name(title: str) -> str:
    """Return a title as the stem of a file's name.

    Examples
    --------
    >>> file_name("Figure 1 at n = 400")
    'figure_1_at_n_400'
    """
    return re.sub(r"[^a-z0-9]+", "_", title.lower()).strip("_")


LIBRARIES = ("numpy", "scipy", "scikit-learn")
"""What forests and clusters may differ between the versions of."""


def libraries() -> dict[str, str]:
    """Return the libraries' versions.

    Examples
    --------
    >>> list(libraries())
    ['numpy', 'scipy', 'scikit-learn']
    """
    return {name: importlib.metadata.version(name) for name in LIBRARIES}


def made_with(seed: int) -> str:
    """Return version, seed and libraries in a sentence.

    Examples
    --------
    >>> made_with(3).startswith("Made with stratal")
    True
    """
    shown = ", ".join(f"{name} {version}" for name, version in libraries().items())
    python = platform.python_version()
    return f"Made with stratal {stratal.__version__}, Python {python}, {shown}; seed {seed}."


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a Markdown table.

    Examples
    --------
    >>> print(markdown_table(["n", "width"], [[100, 0.25]]))
    | n | width |
    |---|---|
    | 100 | 0.25 |
    """
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines)
