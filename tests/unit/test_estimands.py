"""Public modules are attributes of `stratal` and can be imported from, and are the same either way."""

import importlib
import subprocess
import sys

import pytest
from tests.tiers import cells

import stratal

IMPORTED = stratal._PUBLIC_MODULES


@pytest.mark.parametrize("name", IMPORTED)
def test_a_public_module_is_one_by_attribute_and_by_import(name):
    module = importlib.import_module(f"stratal.{name}")

    assert module is getattr(stratal, name)


def test_an_estimand_can_be_imported_from_its_public_place():
    from stratal.estimands import F1

    assert F1 is stratal.metrics.classification.F1
    assert set(stratal.estimands.__all__) <= set(dir(stratal.estimands))


@pytest.mark.parametrize("name", cells(IMPORTED, fast=("estimands", "planning")))
def test_a_fresh_process_imports_the_module_first(name):
    code = f"import stratal.{name} as found; import stratal; assert stratal.{name} is found and found.__all__"
    subprocess.run([sys.executable, "-c", code], check=True)
