"""Names: lists of columns as users write them, keywords or options with a name, the names of a package."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from shlex import quote
from typing import Any


def split_names(text: str | None) -> tuple[str, ...]:
    """Return the names in a comma-separated list.

    Examples
    --------
    >>> split_names("score, judge,")
    ('score', 'judge')
    """
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


def option_of(role: str, name: str) -> str:
    """Return the keyword of Python and the option of the command that give a column its role.

    Examples
    --------
    >>> option_of("value", "my label")
    "value='my label' (--value 'my label')"
    """
    return f"{role}={name!r} (--{role} {quote(name)})"


def import_on_use(
    package: str, modules: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package whose names are imported when they are first used.

    `modules` maps the modules to the names that are imported from them. A command therefore loads only the
    modules that it needs: all modules together take as long as NumPy and SciPy.
    """
    modules_by_name = {name: module for module, names in modules.items() for name in names.split()}

    def load(name: str) -> Any:
        if name not in modules_by_name:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(modules_by_name[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def list_names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules_by_name})

    return load, list_names
