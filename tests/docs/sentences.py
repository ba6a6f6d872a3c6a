"""Draw sentences of pages and messages to read aloud: `python -m tests.docs.sentences SEED`.

Half are from the pages (without code, tables and output), half from the texts of errors and warnings in the
package. None should sound translated.
"""

from __future__ import annotations

import ast
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.words import messages

ROOT = Path(__file__).parents[2]
EACH = 25


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a page's paragraphs and lists."""
    text = re.sub(
        r"^---\n.*?^---\n|^ *```.*?^ *```|<[^>]+>|^\|.*?$|^#.*?$", "", text, flags=re.DOTALL | re.MULTILINE
    )
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    for block in re.split(r"\n\s*\n|\n\s*(?:[-*]|\d+\.) ", text):
        words = " ".join(block.split())
        yield from (part for part in re.split(r"(?<=[.!?]) (?=[A-Z*`_])", words) if len(part.split()) > 4)


def main(seed: int) -> None:
    """Print what a seed draws."""
    pages = [path for path in ROOT.glob("docs/**/*.md") if "decisions" not in path.parts]
    said = {(path, text) for path in [*pages, ROOT / "README.md"] for text in sentences(path.read_text())}
    package = sorted((ROOT / "src" / "stratal").rglob("*.py"))
    told = {
        (path, text) for path in package for _, text in messages(ast.parse(path.read_text())) if " " in text
    }
    for name, found in (("pages", said), ("messages", told)):
        print(f"## {name}: {EACH} of {len(found)}")
        for path, text in random.Random(seed).sample(sorted(found), EACH):
            print(f"{path.relative_to(ROOT)}: {text}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
