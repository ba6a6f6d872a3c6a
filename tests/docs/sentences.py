"""Draw a random sample of sentences and messages for proofreading: `python -m tests.docs.sentences SEED`.

Half of them are from the pages (without code, tables and output), half are texts of errors and warnings of
the package. A native reader should not stumble over any of them.
"""

from __future__ import annotations

import ast
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

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


def messages(tree: ast.AST) -> Iterator[str]:
    """Yield the source of the texts that errors and warnings are created with."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("Error", "Warning", "warn")):
            for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
                is_text = isinstance(argument, ast.Constant) and isinstance(argument.value, str)
                if is_text or isinstance(argument, ast.JoinedStr):
                    yield ast.unparse(argument)


def main(seed: int) -> None:
    """Print the sentences and messages that a seed draws."""
    pages = [path for path in ROOT.glob("docs/**/*.md") if "decisions" not in path.parts]
    page_sentences = {
        (path, text) for path in [*pages, ROOT / "README.md"] for text in sentences(path.read_text())
    }
    package_messages = {
        (path, text)
        for path in (ROOT / "src" / "stratal").rglob("*.py")
        for text in messages(ast.parse(path.read_text()))
        if " " in text
    }
    for name, texts in (("pages", page_sentences), ("messages", package_messages)):
        print(f"## {name}: {EACH} of {len(texts)}")
        for path, text in random.Random(seed).sample(sorted(texts), EACH):
            print(f"{path.relative_to(ROOT)}: {text}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
