"""Every message of the source is in the documentation, and the headings of the FAQ are parts of messages."""

from __future__ import annotations

import ast
import functools
import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FAQ = (ROOT / "docs" / "how-to" / "messages.md").read_text()
QUOTED = re.findall(r"^### (.*)$", FAQ, re.MULTILINE)


def load():
    spec = importlib.util.spec_from_file_location("docs_messages", ROOT / "docs" / "messages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.raised = functools.cache(lambda read=module.raised: list(read()))  # every file is parsed once
    return module


messages = load()


raised = messages.raised


@functools.cache
def page_of_messages():
    return messages.page()


def test_headings_of_the_faq_are_parts_of_messages():
    for quoted in QUOTED:
        pattern = re.escape(quoted).replace("…", ".*")
        assert [what for _, what, _, _ in raised() if re.search(pattern, what)], f"no message says {quoted!r}"


def test_every_advice_of_a_mistake_is_on_the_page_of_messages():
    page = page_of_messages()
    calls = sum(
        len(re.findall(r"raise (?:Input|Budget|Label|Study|Refused|Requirement)Error\(", path.read_text()))
        for path in (ROOT / "src").rglob("*.py")
    )

    assert len(raised()) >= calls
    for _, what, _, action in raised():
        if what.strip("… "):
            assert " ".join(action.split()).replace("|", "\\|") in page
    assert not re.search(r"\| +\| +\| +\|", page), "a message without words"


INTERNAL = {
    "values, counts and cuts do not match",
    "bins must be increasing and not empty",
    "a crossed rule must cross categories",
    "stratum sizes, proxy means and covariances do not match",
    "proxies must be (n, k)",
    "every column of a sample must have one entry per unit",
    "a proxy of a drawn unit is not finite",
    "inclusion probabilities must lie in (0, 1]",
    "a unit occurs twice",
    "its inclusion probabilities differ from those of its design",
    "known must have one entry per stratum",
    "unknown request from the page",
    "the request is not JSON",
    "'before' must be the number of a line of the journal",
    "…: item …: …",
}
"""What only a damaged file (whose reader says what to do), a foreign page or our own code can meet."""


def test_every_message_that_a_user_can_meet_says_what_is_allowed_or_what_to_do():
    bare = {what for _, what, allowed, action in raised() if not (allowed or action) and what.strip("…: ")}

    assert bare <= INTERNAL


def advice(path):
    """The advice of every call of a file that gives some as it stands, whatever the mistake is called."""
    for node in ast.walk(ast.parse(path.read_text())):
        for keyword in getattr(node, "keywords", ()) if isinstance(node, ast.Call) else ():
            if keyword.arg == "action" and isinstance(keyword.value, ast.Constant) and keyword.value.value:
                yield keyword.value.value


def test_advice_that_stands_in_the_source_stands_on_the_page():
    page = page_of_messages()
    given = {text for path in (ROOT / "src").rglob("*.py") for text in advice(path)}

    assert len(given) > 200
    assert [text for text in given if " ".join(text.split()).replace("|", "\\|") not in page] == []


def test_words_that_are_filled_in_are_dots():
    source = 'f"no such {kind}: " + repr(name) if name else "nothing named"'

    assert messages.words(ast.parse(source, mode="eval").body) == "no such …: … / nothing named"


def test_each_kind_of_mistake_is_in_the_reference():
    from stratal import errors

    pages = (ROOT / "docs" / "reference.md").read_text()
    kinds = [name for name in vars(errors) if name.endswith(("Error", "Warning"))]
    assert [name for name in kinds if name not in pages] == []
