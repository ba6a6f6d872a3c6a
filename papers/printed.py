"""Table 1 of Fogliato et al. (2024) as printed: the range of each column, and all its rows from a file."""

from __future__ import annotations

import json
from pathlib import Path

Column = tuple[str, str]
Rows = dict[str, dict[Column, float]]
"""Data set → column → printed ratio."""

COLUMNS: dict[Column, tuple[float, float]] = {
    ("SRS DF", "f"): (0.63, 1.22),
    ("SRS DF", "f*"): (0.27, 1.82),
    ("SRS DF", "f*c"): (0.19, 1.06),
    ("SSRS proportional HT", "emb"): (0.47, 1.03),
    ("SSRS proportional HT", "f"): (0.57, 1.02),
    ("SSRS proportional HT", "f*"): (0.18, 1.02),
    ("SSRS proportional HT", "f*c"): (0.19, 1.05),
    ("SSRS Neyman HT", "f"): (0.43, 1.38),
    ("SSRS Neyman HT", "f*"): (0.11, 1.55),
    ("SSRS Neyman HT", "f*c"): (0.12, 1.11),
}
"""The smallest and the largest ratio in each column of the 34 printed rows."""

FILE = "fogliato_table1.json"

_ARMS = {
    "srs_df": "SRS DF",
    "ssrs_proportional_ht": "SSRS proportional HT",
    "ssrs_neyman_ht": "SSRS Neyman HT",
}


def printed_rows(*directories: Path | None) -> Rows:
    """Return the printed rows by data set, empty where the file is not to be had.

    `fogliato_table1.json` is looked for in each directory, and in a folder `vectors` beside it.

    Examples
    --------
    >>> printed_rows(None)
    {}
    """
    given = [path for path in directories if path is not None]
    places = [place for path in given for place in (path / FILE, path.resolve().parent / "vectors" / FILE)]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        return {}
    rows = json.loads(found.read_text(encoding="utf-8"))["rows"]
    return {
        row["dataset"]: {
            (arm, source): float(value) for key, arm in _ARMS.items() for source, value in row[key].items()
        }
        for row in rows
    }
