"""Columns and labels are interpreted in one place, and commands call what Python calls."""

from __future__ import annotations

import ast
import importlib

from tests.architecture.structure import SOURCE, Package, subpackage

PACKAGE = Package(SOURCE)

# What decides whether labels are compared with the model's answers, and what compares them.
DECODERS = {"is_compared", "comparison_note", "decode_classes", "agreement_with_models"}
RESOLVERS = {
    "stratal.estimation.resolve",
    "stratal.question.decoding",
    "stratal.question",
    # Compares the outcomes of several models with the same labels by the resolver's functions.
    "stratal.metrics.comparison",
}

# From these a command may import any name: messages, the question, and what renders a result.
OPEN_TO_COMMANDS = {
    "stratal",
    "stratal.arrays",
    "stratal.errors",
    "stratal.names",
    "stratal.protocols",
    "stratal.question",
    "stratal.report",
}

# Modules that a command may use, because they handle files, folders, pages and servers, and compute nothing.
FILES_AND_SERVERS = {
    "stratal.designs.files": "replaces a file as a whole",
    "stratal.designs.labelling_files": "writes the folder of a draw",
    "stratal.labels.annotation_tools": "files of annotation tools",
    "stratal.labels.label_files": "reads and writes files of labels",
    "stratal.population.inspection": "describes the columns of a file",
    "stratal.simulation.demonstration": "writes the data of the demonstration",
    "stratal.study": "opens and reads studies",
    "stratal.tables": "reads tables",
}

# What a command still takes from modules that compute or interpret, each with its reason.
EXCEPTIONS = {
    (
        "stratal.designs.extending",
        "describe_differences",
    ): "names what changed in a file since it was planned for",
    ("stratal.estimation.stratum_table", "StratumRow"): "a row of the JSON schema",
    ("stratal.labels.labels", "TO_LABEL_NAME"): "the file to fill in, for the next command",
    ("stratal.planning.plan", "PlannedDesign"): "a row of the JSON schema",
    ("stratal.planning.plan", "PlannedPart"): "a row of the JSON schema",
    ("stratal.planning.entry_points", "plan_for_rate"): "plans from counts without a file",
    ("stratal.planning.power", "width_to_detect"): "plans for a difference",
    ("stratal.planning.selection", "expected_labels"): "plans a selection of models",
    ("stratal.population.column_names", "match_columns"): "columns that fit a pattern",
    ("stratal.population.column_names", "match_patterns"): "columns that fit a pattern",
    ("stratal.population.column_names", "stored_row_base"): "reads plans of earlier versions",
    ("stratal.population.digest", "PopulationDigest"): "compares a file with its plan",
}


def imports_of_commands():
    """Yield each import of another part of the package in `cli/`."""
    for entry in PACKAGE.imports:
        if subpackage(entry.importer) == "cli" and subpackage(entry.module) != "cli":
            yield entry


def public_names(package):
    """Return the names that a package lists in its `__all__`."""
    return set(getattr(importlib.import_module(package), "__all__", ()))


def test_only_the_resolver_decides_what_a_label_is():
    found = {
        name
        for name, tree in PACKAGE.trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and (getattr(node.func, "id", None) or getattr(node.func, "attr", None)) in DECODERS
    }

    assert found <= RESOLVERS
    assert "stratal.estimation.resolve" in found


def test_a_command_imports_public_functions_and_what_handles_files():
    found = set()
    for entry in imports_of_commands():
        package = ".".join(entry.module.split(".")[:2])
        is_public = entry.module == package and entry.name in public_names(package)
        handles_files = entry.module in FILES_AND_SERVERS or package in FILES_AND_SERVERS
        if package not in OPEN_TO_COMMANDS and not is_public and not handles_files:
            found.add((entry.module, entry.name))

    assert found == set(EXCEPTIONS)


def test_the_commands_that_estimate_import_public_functions_only():
    allowed = {
        "stratal",
        "stratal.errors",
        "stratal.names",
        "stratal.protocols",
        "stratal.question",
        "stratal.evaluation",
        "stratal.report",
        "stratal.report.verdicts",
        "stratal.thresholds",
    }
    modules = {entry.module for entry in imports_of_commands() if entry.importer == "stratal.cli.estimate"}

    assert modules <= allowed
