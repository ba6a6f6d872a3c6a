"""Build the site: `make docs`, or `python docs/build_site.py [FOLDER]`. Works offline; a warning is an error.

It first writes all pages into build/pages: the pages of `docs`, and generated ones: the reference of each subpackage
from its docstrings, the benchmarks, the changelog, and a notebook of each tutorial. Links to files outside `docs`
are replaced by links within the site. Figures are part of the page, so that they follow its colours.
`folder/*.md` in the navigation means the pages of that folder. Then MkDocs builds build/site from them.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any

import json_keys
import make_pages
import messages
import notebooks
import yaml

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
BUILD = ROOT / "build"
MOVED = {
    "README.md": "index.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "benchmarks/RESULTS.md": "project/benchmarks.md",
}
"""Files of the project → their pages in the site. A file of benchmarks/results is benchmarks/NAME."""

LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)#\s]+)(#[^)]*)?\)")
FIGURE = re.compile(r"!\[([^\]]*)\]\(([^)]+\.svg)\)")
OPTION = re.compile(r"(?<![-\w])--[-\w]+")
LONG = re.compile(r"(?<!</span>)<code>(?=[^<]{45})")
INLINE = re.compile(r"(?<!</span>)<code>([^<]*--[^<]*)</code>")
UNSEARCHED = "---\nsearch:\n  exclude: true\n---\n\n"
BOOSTS = {
    **dict.fromkeys(("reference/", "papers/", "project/", "release.md"), 0.001),
    **dict.fromkeys(("alternatives/", "showcase/", "guarantees.md", "glossary.md"), 0.1),
    "commands.md": 0.5,
    **dict.fromkeys(("how-to/messages.md", "scale.md", "tutorials/"), 1),
    **dict.fromkeys(("how-to/", "guide/", "methods/"), 3),
    "start/": 10,
}
"""Beginnings of places in the site, and the weight of these pages in the search; the first that fits counts."""

TAGS = {"methods/comparisons.md": "p-value", "methods/elsewhere.md": "weights"}
"""Pages, and a term that is searched for but not in their titles: a match in a title outweighs all matches in the text."""


def sources() -> Iterator[tuple[str, str, str]]:
    """Yield place in the site, folder in the project and text, of every page."""
    for path in sorted(DOCS.rglob("*.md")):
        text = path.read_text()
        is_searched = path.parent.name != "decisions"
        folder = path.parent.relative_to(ROOT).as_posix()
        yield path.relative_to(DOCS).as_posix(), folder, text if is_searched else UNSEARCHED + text
    for name, place in MOVED.items():
        if not (DOCS / place).exists():
            text = (ROOT / name).read_text()
            is_searched = place not in ("project/changelog.md", "project/benchmarks.md")
            yield place, PurePosixPath(name).parent.as_posix(), text if is_searched else UNSEARCHED + text
    for path in sorted(ROOT.glob("benchmarks/results/*.md")):
        yield f"benchmarks/{path.name}", "benchmarks/results", UNSEARCHED + titled(path.read_text())
    made = {"reference/messages.md": messages.page(), "reference/json.md": json_keys.page()}
    for place, text in (make_pages.reference_pages() | made).items():
        yield place, "docs/reference", text


def write_pages(target: Path) -> list[str]:
    """Write every page, figure and notebook into a new folder, and return the places of the pages."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(DOCS, target, ignore=shutil.ignore_patterns("*.py", "*.md", "__pycache__"))
    pages = list(sources())
    places = {place for place, _, _ in pages}
    for place, home, text in pages:
        (target / place).parent.mkdir(parents=True, exist_ok=True)
        if place.startswith("tutorials/") and place != "tutorials/index.md":
            (target / place).with_suffix(".ipynb").write_text(notebooks.notebook(text))
            text = with_notebook(text, PurePosixPath(place).stem)
        if place == "project/gallery.md":
            text = with_code(text)
        if place == "reference.md":
            text = make_pages.linked_names(text)
        text = LINK.sub(lambda found, at=(home, place): moved(found, *at, places), text)
        text = FIGURE.sub(lambda found, home=home: inlined(found, home), text)
        (target / place).write_text(boosted(place, text))
    return sorted(places)


def boosted(place: str, text: str) -> str:
    """Return a page with the weight and the tag that it has in the search."""
    boost = next((weight for start, weight in BOOSTS.items() if place.startswith(start)), 1)
    if text.startswith("---\n") or boost == 1:
        return text
    tags = f"tags: [{TAGS[place]}]\n" if place in TAGS else ""
    return f"---\n{tags}search:\n  boost: {boost}\n---\n\n{text}"


def titled(text: str) -> str:
    """Return a page that begins with a section with its headings one level up, so that the first is its title."""
    parts = re.split(r"(^```.*?^```$)", text, flags=re.DOTALL | re.MULTILINE)
    raised = "".join(part if part.startswith("```") else re.sub(r"^##", "#", part, flags=re.MULTILINE) for part in parts)
    return raised if text.startswith("## ") else text


def with_code(text: str) -> str:
    """Return the gallery with the program of each figure, which makes or reads its data, folded below it."""
    program = (DOCS / "figures.py").read_text()
    sources = {
        node.name: ast.get_source_segment(program, node) or ""
        for node in ast.parse(program).body
        if isinstance(node, ast.FunctionDef)
    }

    def folded(found: re.Match[str]) -> str:
        name = PurePosixPath(found[2]).stem
        source = textwrap.indent(sources[name.replace("-", "_")], "    ")
        summary = f"Code and data: python docs/figures.py {name}"
        return f'{found[0]}\n\n??? note "{summary}"\n\n    ```python\n{source}\n    ```\n'

    return FIGURE.sub(folded, text)


def with_notebook(text: str, name: str) -> str:
    """Return a tutorial with a button below its title."""
    return re.sub(r"\A(# .*\n)", rf"\1\n[As a notebook]({name}.ipynb){{ .md-button }}\n", text)


def moved(found: re.Match[str], home: str, place: str, places: set[str]) -> str:
    """Return a link with its target in the site; of a file that is not in the site, its words."""
    words, target, anchor = found[1], found[2], found[3] or ""
    path = os.path.normpath(os.path.join(home, target))
    if target.startswith(("http", "mailto")) or target.endswith(".ipynb") or path.startswith(".."):
        return found[0]
    if path.startswith("benchmarks/results/"):
        goal = path.replace("/results/", "/")
    else:
        goal = MOVED.get(path, path.removeprefix("docs/"))
    if goal in places:
        return f"[{words}]({os.path.relpath(goal, PurePosixPath(place).parent)}{anchor})"
    return words if (ROOT / path).exists() and not path.startswith("docs/") else found[0]


def inlined(found: re.Match[str], home: str) -> str:
    """Return a figure's SVG itself with its alternative text."""
    drawing = (ROOT / home / found[2]).resolve().read_text()
    drawing = re.sub(r"\A.*?(?=<svg)", "", drawing, flags=re.DOTALL)
    wide = float(re.search(r'viewBox="0 0 ([\d.]+)', drawing)[1])
    shown = f'<svg role="img" aria-label="{found[1]}" style="max-width: {1.3 * wide:.0f}px; min-width: {min(0.8 * wide, 480):.0f}px" '
    drawing = drawing.replace("<svg ", shown, 1)
    return f'<figure class="figure" tabindex="0">{" ".join(drawing.split())}</figure>'


def spread(entry: Any, pages: list[str]) -> Any:
    """Return the navigation with `folder/*.md` replaced by the pages of that folder that are not named before it."""
    if isinstance(entry, dict):
        return {name: spread(value, pages) for name, value in entry.items()}
    if isinstance(entry, str) and "*" in entry:
        return [page for page in pages if fnmatch(page, entry)]
    if isinstance(entry, list):
        parts = [spread(part, pages) for part in entry]
        flat = [page for part in parts for page in (part if isinstance(part, list) else [part])]
        return [page for number, page in enumerate(flat) if page not in flat[:number]]
    return entry


def unbroken(found: re.Match[str]) -> str:
    """Return code within a sentence, its options kept whole: browsers end lines after `--`."""
    return f"<code>{OPTION.sub(lambda option: f'<span class=option>{option[0]}</span>', found[1])}</code>"


def wrapped(page: str) -> str:
    """Return a page whose code breaks where it should, long code anywhere, options nowhere, and whose search has a name."""
    page = page.replace('data-md-component="search" role="dialog"', 'data-md-component="search" role="dialog" aria-label="Search"')
    return LONG.sub("<code class=long>", INLINE.sub(unbroken, page))


def about() -> dict[str, str | None]:
    """Return the version of the package, and the address of its source (None until it has one), from pyproject.toml."""
    import tomllib

    from stratal import __version__

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return {"version": __version__, "source": project.get("urls", {}).get("Source")}


def builder(settings: Path) -> list[str]:
    """Return the command that builds a site; with `--quiet` MkDocs would no longer count the warnings."""
    return [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(settings)]


NOT_FOUND = """<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content="width=device-width">
<title>Page not found · stratal</title><style>body{font:1.1rem/1.5 system-ui,sans-serif;max-width:36rem;margin:18vh auto;
padding:0 1rem;background:#fff;color:#1d2433}a{color:#0a655b}@media(prefers-color-scheme:dark){body{background:#1e2129;
color:#e6e9ef}a{color:#5fd1c1}}</style><main><h1>Page not found</h1><p>This page does not exist, or has another name now.
<a href="./">Up one level</a>, or search:</p><form><input name="q" type="search" aria-label="Search" required>
<button>Search</button></form></main><script>
document.querySelector("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const parts = location.pathname.split("/").slice(0, -1), query = `?q=${encodeURIComponent(event.target.q.value)}`;
  for (; parts.length > 1; parts.pop()) {
    const found = await fetch(`${parts.join("/")}/search/search_index.js`, { method: "HEAD" }).catch(() => null);
    if (found?.ok) break;
  }
  location.href = `${parts.join("/")}/${query}`;
});
</script></html>
"""
"""What a server shows for an address that leads nowhere. Its search looks for the folder of the site, which is not known."""


def main(build: Path = BUILD) -> int:
    """Write the pages into build/pages and the site into build/site; return the builder's exit status."""
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    settings["nav"] = spread(settings["nav"], write_pages(build / "pages"))
    settings |= {"docs_dir": "pages", "site_dir": "site"}
    project = about()
    settings["plugins"]["mkdocstrings"]["handlers"]["python"]["paths"] = [str(ROOT / "src")]
    settings["copyright"] = f"stratal {project['version']}"
    if project["source"] is not None:
        settings["repo_url"] = project["source"]
    made = build / "mkdocs.yml"
    made.write_text(yaml.safe_dump(settings, sort_keys=False, allow_unicode=True))
    status = subprocess.run(builder(made), env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, check=False).returncode
    for page in (build / "site").rglob("*.html"):
        page.write_text(wrapped(page.read_text()))
    (build / "site" / "404.html").write_text(NOT_FOUND)
    return status


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
