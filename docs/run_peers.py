"""Runs the other packages' code on the pages of `docs/alternatives`, each in an interpreter that has the package.

`python docs/run_peers.py PAGE PYTHON`. A page's first block `python` makes the data; a block `py` is the other
package's, run after it in a process of its own, and the block `text` below it is what that printed. What `stratal`
prints on these pages is kept true by run_pages.py and the tests.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

DATA = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
THEIRS = re.compile(r"^```py\n(.*?)^```\n\n```text\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


def printed(program: str, python: str) -> str:
    """Return what a program prints in another interpreter; its warnings are not shown."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [python, "-W", "ignore", "-c", program], cwd=folder, capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return "".join(line.rstrip() + "\n" for line in done.stdout.strip().splitlines())


def main(page: Path, python: str) -> None:
    """Write the page again with what the other package prints now."""
    text = page.read_text()
    data = DATA.search(text)[1]
    again = THEIRS.sub(
        lambda found: f"```py\n{found[1]}```\n\n```text\n{printed(data + found[1], python)}```\n", text
    )
    print("changed " if again != text else "the same", page)
    page.write_text(again)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
