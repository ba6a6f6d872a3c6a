"""Imports follow the layers, public names are loaded lazily, and arrays need only NumPy and SciPy."""

from __future__ import annotations

import functools
import importlib
import re
import subprocess
import sys

import pytest
from tests.architecture.structure import LAYERS, SINGLE_MODULES, SOURCE, Package, subpackage

PACKAGE = Package(SOURCE, SOURCE.parents[1] / "papers")

ARRAY_LAYERS = (
    "designs",
    "intervals.methods",
    "population.distribution",
    "randomness",
    "strata",
    "strata.standard_deviations",
)


def test_every_file_belongs_to_a_layer():
    subpackages = {subpackage(name) for name in PACKAGE.paths}

    assert subpackages <= set(LAYERS), "add the new subpackage to LAYERS and to the table in CONTRIBUTING.md"
    assert len(subpackages - set(SINGLE_MODULES)) <= 19
    assert {path.stem for path in SOURCE.glob("*.py")} == set(SINGLE_MODULES)


def test_no_import_points_to_a_later_layer():
    """Lazy imports count. For type annotations, a protocol or abstract base class may be in a later layer."""
    assert PACKAGE.upward_imports() == []


def test_no_files_import_each_other_in_a_cycle():
    assert PACKAGE.cycles() == []


def loaded_after(code: str) -> set[str]:
    script = f"import sys; before = set(sys.modules); {code}; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in done.stdout.split()}


def third_party(names: set[str]) -> set[str]:
    # NumPy's f2py, which SciPy loads, takes charset_normalizer where it happens to be installed.
    known = {*sys.stdlib_module_names, "cython_runtime", "charset_normalizer"}
    return {name for name in names if name not in known and not name.startswith("_")}


@functools.cache
def numeric() -> set[str]:
    """NumPy, SciPy, and whatever else these two load where it happens to be installed."""
    return third_party(loaded_after("import numpy, numpy.f2py, scipy.special, scipy.stats, scipy.optimize"))


def test_import_stratal_loads_no_third_party_package():
    assert third_party(loaded_after("import stratal")) == {"stratal"}


def test_the_array_layers_need_only_numpy_and_scipy():
    imports = ", ".join(f"stratal.{name}" for name in ARRAY_LAYERS)

    assert third_party(loaded_after(f"import {imports}")) <= {"stratal", *numeric()}


def test_arrays_from_plan_to_interval_need_only_numpy_and_scipy():
    code = (
        "import stratal, numpy; p = stratal.Population.from_arrays(proxy=numpy.linspace(0, 1, 50));"
        "s = stratal.plan(p, 20).draw(seed=1); stratal.estimate(s, [1] * 19 + [0]).confidence_interval()"
    )

    assert third_party(loaded_after(code)) <= {"stratal", *numeric()}


def test_masked_arrays_are_loaded_only_if_an_input_is_masked():
    code = (
        "import stratal, numpy, sys; stratal.Population.from_arrays(proxy=numpy.linspace(0, 1, 50));"
        "print('numpy.ma' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["False"]


def test_the_package_changes_no_import_of_other_packages():
    for path in PACKAGE.paths.values():
        changes = re.findall(r"sys\.(?:meta_path|path_hooks)|sys\.modules\[[^\]]+\] =", path.read_text())
        assert not changes, path


@pytest.mark.parametrize("package", ["designs", "labels", "planning", "proxy", "strata"])
def test_type_checkers_see_the_names_that_a_package_imports_when_they_are_used(package):
    module = importlib.import_module(f"stratal.{package}")
    text = (SOURCE / package / "__init__.py").read_text()
    imports = re.findall(r"    from (\S+) import \(?\s*(\w+) as \2\b", text)

    assert {name: source for source, name in imports} == {
        name: source for source, names in module._NAMES.items() for name in names.split()
    }
    assert {*module.__all__} <= {*dir(module)}
    assert all(getattr(module, name) is not None for name in module.__all__)


def test_type_checkers_see_the_names_that_exist_at_run_time():
    import stratal

    text = (SOURCE / "__init__.py").read_text()
    seen = {name: module for module, name in re.findall(r"from stratal\.(\S+) import \w+ as (\w+)", text)}

    assert {
        name: module for name, module in seen.items() if name not in stratal._PUBLIC_MODULES
    } == stratal._MODULES_BY_NAME


def test_every_public_name_exists():
    import stratal

    for name in stratal.__all__:
        assert getattr(stratal, name) is not None
    with pytest.raises(AttributeError):
        stratal.nothing  # noqa: B018


FOUR_COMMANDS = """
import sys
from pathlib import Path
from stratal.cli import main
folder = Path(sys.argv[1])
predictions, sample, labels = folder / "p.csv", folder / "drawn", folder / "labels.csv"
rows = "".join(f"u{n},{n / 400:.4f},{n % 3}\\n" for n in range(400))
predictions.write_text(f"id,score,language\\n{rows}")
asked = [str(predictions), "--proxy", "score", "--groups", "language", "--budget", "40"]
for command in (
    ["doctor", str(predictions)],
    ["plan", *asked],
    ["draw", *asked, "--seed", "1", "--output", str(sample)],
    ["estimate", str(sample / "sample.parquet"), str(labels)],
):
    if command[0] == "estimate":
        drawn = (sample / "to_label.csv").read_text().splitlines()[1:]
        answers = "".join(f"{line.split(',')[0]},{at % 2}\\n" for at, line in enumerate(drawn))
        labels.write_text(f"id,label\\n{answers}")
    sys.argv = ["stratal", *command]
    try:
        main()
    except SystemExit as ended:
        assert not ended.code
print("LOADED", *sys.modules)
"""


def test_commands_on_a_small_file_load_no_pandas_no_ibis_and_little_of_scipy(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FOUR_COMMANDS, str(tmp_path)], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.partition("LOADED")[2].split())

    assert {"duckdb", "pyarrow"} <= loaded
    assert not loaded & {"pandas", "ibis", "sqlglot", "scipy.stats", "scipy.optimize", "scipy.sparse"}
    assert not loaded & {"stratal.metrics", "stratal.regression"}  # a mean needs neither


@pytest.mark.parametrize(
    ("command", "unneeded"),
    [
        ("doctor", ("stratal.evaluation", "stratal.metrics", "stratal.study.opening")),
        (
            "plan --proxy score --budget 9",
            (
                *("pandas", "scipy.stats", "scipy.optimize", "stratal.metrics", "stratal.study"),
                *("stratal.labels.labels", "stratal.report.document", "stratal.estimation.outcome_means"),
                *("stratal.estimation.estimate", "stratal.intervals.evidence", "stratal.planning.rounds"),
                *("stratal.proxy.calibration", "stratal.designs.poisson", "stratal.designs.external_sample"),
            ),
        ),
    ],
)
def test_a_command_loads_no_room_that_it_does_not_enter(tmp_path, command, unneeded):
    rows = "".join(f"u{n},{n / 40}\n" for n in range(40))
    (tmp_path / "p.csv").write_text(f"id,score\n{rows}")
    name, *options = command.split()
    code = (
        "import atexit, sys; from stratal.cli import main;"
        "atexit.register(lambda: print('LOADED', *sys.modules));"
        f"sys.argv = ['stratal', {name!r}, 'p.csv', *{options}]; main()"
    )
    asked = [sys.executable, "-c", code]
    done = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, check=True)

    assert not set(done.stdout.partition("LOADED")[2].split()) & set(unneeded)


def test_no_cycles_are_looked_for_at_the_end_of_a_command():
    code = (
        "import atexit, gc, sys; from stratal.cli import main; sys.argv = ['stratal', '--version'];"
        "atexit.register(lambda: print(len(gc.get_objects()) < gc.get_freeze_count())); main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split()[-1] == "True"


@pytest.mark.parametrize(
    ("text", "said"), [("f1:yes", "f1:yes"), ("coefficient:x", "coefficient:x"), ("kapa:judge", "'kappa'")]
)
def test_a_kind_of_estimand_enters_when_it_is_asked_for(text, said):
    code = (
        "from stratal.estimation.estimand import as_estimand\n"
        f"try: print(as_estimand({text!r}).text)\nexcept ValueError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert said in done.stdout
