"""Columns and labels are interpreted in one place, and commands call what Python calls."""

from __future__ import annotations

import ast

from tests.architecture.house import HERE, House, room

HOUSE = House(HERE, None)

# What decides whether labels are compared with the model's answers, and what compares them.
DECODERS = {"is_compared", "comparison_note", "known_classes", "shares_equal"}
RESOLVERS = {
    "stratal.estimation.resolve",
    "stratal.question.decoding",
    "stratal.question",
    # Compares the outcomes of several models with the same labels by the resolver's functions.
    "stratal.estimation.comparison",
}

# Parts of the package from which a command may import any name.
OPEN_TO_COMMANDS = {"stratal", "stratal.arrays", "stratal.errors", "stratal.question", "stratal.report"}


def imports_of_commands():
    """Yield the module and the imported name of each import in `cli/`."""
    for arrow in HOUSE.arrows:
        if room(arrow.importer) == "cli" and room(arrow.module) != "cli":
            yield arrow


def public_names(package):
    """Return the names that a package lists in its `__all__`."""
    import importlib

    return set(getattr(importlib.import_module(package), "__all__", ()))


def test_only_the_resolver_decides_what_a_label_is():
    found = {
        name
        for name, tree in HOUSE.trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Name | ast.Attribute)
        and (node.id if isinstance(node, ast.Name) else node.attr) in DECODERS
    }

    assert found <= RESOLVERS
    assert "stratal.estimation.resolve" in found


def test_a_command_imports_public_names_only():
    """A package's public names are those of its `__all__`; `report`, `question` and errors are open."""
    found = []
    for arrow in imports_of_commands():
        package = ".".join(arrow.module.split(".")[:2])
        if arrow.module in OPEN_TO_COMMANDS or package in OPEN_TO_COMMANDS:
            continue
        if arrow.module == package and arrow.name in public_names(package):
            continue
        found.append(f"{arrow.importer}: {arrow.module}.{arrow.name}")

    assert sorted(found) == []
