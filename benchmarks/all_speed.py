"""Measure every speed that is required against its limit, in some five minutes on a quiet machine.

    python -m benchmarks.all_speed [--ssepy PYTHON] [--ppi PYTHON]

Runs start, after_draw, main_job (five pairs), regression and tables (10⁷ rows, three rounds), and writes
their pages and the index. Tables of 10⁸ and 10⁹ rows take longer: `benchmarks/tables.py`.
"""

from __future__ import annotations

import argparse
import os
import tempfile

from benchmarks.run import gather, peers, run

ONE_THREAD = {"start", "after_draw"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ssepy", help="Python that has ssepy 0.1.1; made unless given")
    parser.add_argument("--ppi", help="Python that has ppi-python 0.2.3; made unless given")
    options = parser.parse_args()
    ssepy, ppi = peers(options)
    given = os.environ.pop("OMP_NUM_THREADS", None)
    for name, arguments in (
        ("start", []),
        ("after_draw", []),
        ("main_job", ["--peer", ssepy(), "--repeats", "5"]),
        ("regression", ["--peer", ppi()]),
        ("tables", ["--units", "1e7", "--rounds", "3", "--directory", tempfile.gettempdir()]),
    ):
        if name in ONE_THREAD:
            os.environ["OMP_NUM_THREADS"] = "1"
        run(name, arguments)
        os.environ.pop("OMP_NUM_THREADS", None)
    if given is not None:
        os.environ["OMP_NUM_THREADS"] = given
    gather()


if __name__ == "__main__":
    main()
