"""Natural mistakes on the command line: what was typed, the remedy that the message names, and that it works.

Each row is typed as a user types it, in a folder with the files that `world` makes. A mistake is one message
of the project's own and nothing is written; a row's second command is the first with the remedy followed.
"""

from __future__ import annotations

import csv
import re

import numpy as np
import pytest

from stratal.errors import StratalError

from .pasted import invoke, run, write

PLAN = "plan p.csv --proxy confidence --budget 40"
DRAW = "draw p.csv --proxy confidence --budget 40 --output new"
ESTIMATE = "estimate audit/sample.parquet labels.csv"
CLASSES = "estimate classes/sample.parquet classes.csv --predicted answer"
ELSEWHERE = "estimate elsewhere.csv --value right"
SIMULATE = "simulate truth.csv --outcome right --proxy confidence --replicates 20 --budget 30"

ROWS = [
    # ---- no file, the wrong file
    ("plan nowhere.csv --proxy confidence --budget 40", "no such file", PLAN),
    ("doctor nowhere.csv", "no such file", "doctor p.csv"),
    ("draw nowhere.csv --proxy confidence --budget 40 --output new", "no such file", DRAW),
    ("estimate nowhere.parquet labels.csv", "no such file", ESTIMATE),
    ("estimate audit/sample.parquet nowhere.csv", "no such file", ESTIMATE),
    ("simulate nowhere.csv --outcome right", "no such file", None),
    ("plan audit --proxy confidence --budget 40", "is a directory", PLAN),
    ("plan audit/sample.parquet --proxy proxy.confidence --budget 9", "is a drawn sample", PLAN),
    ("doctor audit/sample.parquet", "stratal estimate", ESTIMATE),
    ("draw audit/sample.parquet --proxy proxy.confidence --budget 9 --output new", "sample was drawn", DRAW),
    ("estimate p.csv labels.csv", "The sample comes first", ESTIMATE),
    ("estimate labels.csv audit/sample.parquet", "The sample comes first", ESTIMATE),
    ("estimate audit/to_label.csv labels.csv", "The sample comes first", ESTIMATE),
    ("estimate audit/sample.parquet", "SAMPLE LABELS…", ESTIMATE),
    ("estimate", "one table with labels in some rows", ESTIMATE),
    ("estimate audit/sample.parquet audit/to_label.csv", "Fill in the label column", ESTIMATE),
    ("plan empty.csv --proxy confidence --budget 40", "empty", PLAN),
    ("estimate audit/sample.parquet empty.csv", "empty", ESTIMATE),
    # ---- columns
    ("plan p.csv --proxy confidnce --budget 40", "'confidence'", PLAN),
    ("plan p.csv --proxy nothing --budget 40", "no such column", PLAN),
    ("plan p.csv --id uid --proxy confidence --budget 40", "no such column: 'uid'", PLAN),
    ("plan p.csv --id kind --proxy confidence --budget 40", "'dog'|'cat'", PLAN),
    ("plan p.csv --proxy kind --budget 40", "--by COL", "plan p.csv --by kind --budget 40"),
    ("plan hdfs://nowhere/p.csv --proxy confidence --budget 40", "--engine spark", PLAN),
    ("plan p.csv --proxy confidence --by knd --budget 40", "'kind'", f"{PLAN} --by kind"),
    ("plan p.csv --proxy confidence --groups knd --budget 40", "'kind'", f"{PLAN} --groups kind"),
    ("plan p.csv --proxy confidence --features size --budget 40", "with --stratify features", PLAN),
    ("draw p.csv --proxy confidence --show prompt --budget 40 --output new", "no such column", DRAW),
    ("draw p.csv --proxy confidence --show confidence --budget 40 --output new", "would influence", DRAW),
    ("draw p.csv --proxy confidence --predicted anser --budget 40 --output new", "'answer'",
     f"{DRAW} --predicted answer"),
    (f"{ESTIMATE} --value lable", "'label'", f"{ESTIMATE} --value label"),
    (f"{ESTIMATE} --id uid", "no column 'uid'", ESTIMATE),
    (f"{ESTIMATE} --by kind", "--groups kind", None),
    (f"{ESTIMATE} --predicted answer", "'answer'", ESTIMATE),
    ("simulate truth.csv --outcome wrong --proxy confidence", "no such column|'right'", SIMULATE),
    # ---- numbers
    ("plan p.csv --proxy confidence", "either a budget or a half-width", PLAN),
    ("plan p.csv --proxy confidence --budget 40 --half-width 0.1", "either a budget or a half-width", PLAN),
    ("plan p.csv --proxy confidence --budget 0", "1 to 500", PLAN),
    ("plan p.csv --proxy confidence --budget -5", "1 to 500", PLAN),
    ("plan p.csv --proxy confidence --budget 5000", "larger than the population", PLAN),
    ("plan p.csv --proxy confidence --budget 9 --strata 9", "--minimum 1", "plan p.csv --proxy confidence "
     "--budget 9 --strata 9 --minimum 1"),
    ("plan p.csv --proxy confidence --half-width 2", "write 0.02", "plan p.csv --proxy confidence "
     "--half-width 0.08"),
    ("plan p.csv --proxy confidence --half-width 5", "write 0.05", None),
    ("plan p.csv --proxy confidence --half-width 0.5", "below 0.5", None),
    ("plan p.csv --proxy confidence --half-width 0", "positive number", None),
    ("plan p.csv --proxy confidence --half-width -0.1", "positive number", None),
    ("draw p.csv --proxy confidence --half-width 2 --output new", "write 0.02", None),
    (f"{PLAN} --confidence-level 95", "between 0 and 1.*write 0.95", f"{PLAN} --confidence-level 0.95"),
    (f"{PLAN} --confidence-level 1", "between 0 and 1", None),
    (f"{ESTIMATE} --confidence-level 95", "between 0 and 1.*write 0.95",
     f"{ESTIMATE} --confidence-level 0.95"),
    (f"{PLAN} --strata 0", "1, 2, …", f"{PLAN} --strata 4"),
    (f"{PLAN} --minimum 0", "minimum", f"{PLAN} --minimum 1"),
    (f"{DRAW} --seed -1", "seed", f"{DRAW} --seed 1"),
    (f"{PLAN} --bounds 0", "LOW,HIGH", f"{PLAN} --bounds 0,1"),
    (f"{PLAN} --bounds zero,one", "LOW,HIGH", None),
    (f"{PLAN} --bounds 1,0", "", f"{PLAN} --bounds 0,1"),
    (f"{ESTIMATE} --bounds 5", "LOW,HIGH", f"{ESTIMATE} --bounds 0,5"),
    (f"{ESTIMATE} --bounds 2,5", "outside the outcome's values", f"{ESTIMATE} --bounds 0,5"),
    (f"{ESTIMATE} --cross-fit 1", "fold", f"{ESTIMATE} --cross-fit 5"),
    # ---- names of methods
    (f"{PLAN} --stratify kmeans", "k-means", f"{PLAN} --stratify k-means"),
    (f"{PLAN} --stratify magic", "k-means", None),
    (f"{PLAN} --stratify category", "--by COL", f"{PLAN} --stratify category --by kind"),
    (f"{PLAN} --allocation neymann", "neyman", f"{PLAN} --allocation neyman"),
    (
        "plan p.csv --proxy confidence --half-width 0.05 --assume best", "optimistic",
        "plan p.csv --proxy confidence --half-width 0.05 --assume optimistic",
    ),
    (f"{PLAN} --assume optimistic", "--assume with --half-width", PLAN),
    (f"{DRAW} --design random", "simple-random", f"{DRAW} --design simple-random"),
    (f"{DRAW} --design clusters", "--cluster COL", None),
    (f"{DRAW} --design poisson:area", "no such column", f"{DRAW} --design poisson"),
    ("draw p.csv --proxy confidence --design poisson --output new", "needs --budget", None),
    (f"{ESTIMATE} --estimator ppi", "'ppi\\+\\+'", f"{ESTIMATE} --estimator ppi++"),
    (f"{ESTIMATE} --estimator ht", "horvitz-thompson", f"{ESTIMATE} --estimator horvitz-thompson"),
    (f"{ESTIMATE} --interval wald", "wilson|allowed", f"{ESTIMATE} --interval wilson"),
    (f"{ESTIMATE} --target sample", "allowed: 'population', 'super", f"{ESTIMATE} --target population"),
    (f"{ESTIMATE} --outcome yes", "binary", f"{ESTIMATE} --outcome binary"),
    (f"{ESTIMATE} --combine vote", "majority", f"{ESTIMATE} --combine majority"),
    (f"{ESTIMATE} --calibration platt", "logistic", None),
    (f"{ESTIMATE} --metric acuracy --predicted answer", "accuracy|answer", None),
    (f"{SIMULATE} --design kmeans:5:robust", "k-means", f"{SIMULATE} --design k-means:5:robust"),
    (f"{SIMULATE} --design k-means", "k-means|allocation", None),
    (f"{SIMULATE} --estimator ppi", "ppi", f"{SIMULATE} --estimator ppi++"),
    (f"{SIMULATE} --interval wald", "allowed|wilson", f"{SIMULATE} --interval wilson"),
    ("simulate truth.csv --outcome right --proxy confidence --budget few", "N,…", SIMULATE),
    ("simulate truth.csv --outcome right --proxy confidence --budget 9999", "out of range", SIMULATE),
    (f"{SIMULATE} --output results.csv", ".parquet", None),
    (f"{SIMULATE} --output nowhere/r.parquet", "Create it first", None),
    # ---- labels
    ("estimate audit/sample.parquet strangers.csv", "not in this sample", ESTIMATE),
    ("estimate audit/sample.parquet twice.csv", "two labels", ESTIMATE),
    ("estimate audit/sample.parquet words.csv", "--positive|--map", "estimate audit/sample.parquet words.csv "
     "--map splendid=1,dreadful=0"),
    ("estimate audit/sample.parquet words.csv --map splendid", "LABEL=NUMBER", None),
    ("estimate audit/sample.parquet words.csv --map splendid=yes", "--map Pass=1,Fail=0", None),
    ("estimate audit/sample.parquet words.csv --map splendid=1", "dreadful", None),
    ("estimate audit/sample.parquet statuses.csv", "submitted or skipped", ESTIMATE),
    ("estimate audit/sample.parquet noids.csv", "no id column", ESTIMATE),
    (f"{ESTIMATE} labels.csv", "two labels", ESTIMATE),
    # ---- classes
    ("estimate classes/sample.parquet shouted.csv --predicted answer", "Spell the labels", CLASSES),
    ("estimate classes/sample.parquet right.csv --predicted answer", "leave out --predicted",
     "estimate classes/sample.parquet right.csv"),
    (f"{CLASSES} --class cat", "--class with --metric", f"{CLASSES} --metric precision --class cat"),
    (f"{CLASSES} --metric f1 --class cats", "'cat'", f"{CLASSES} --metric f1 --class cat"),
    (f"{CLASSES} --metric f1 --class cat,horse", "'horse'", f"{CLASSES} --metric f1 --class cat,dog"),
    (f"{CLASSES} --metric F1", "'f1'", f"{CLASSES} --metric f1"),
    (f"{CLASSES} --metric kapa", "no such metric", f"{CLASSES} --metric mcc"),
    (f"{CLASSES} --compare label", "two models", None),
    # ---- models
    ("estimate audit/sample.parquet models.csv --compare a,c", "'a'|'b'", "estimate audit/sample.parquet "
     "models.csv --compare a,b"),
    ("estimate audit/sample.parquet models.csv --compare a", "2 or more", None),
    ("estimate audit/sample.parquet long.csv --model mdel", "'model'",
     "estimate audit/sample.parquet long.csv --model model"),
    ("estimate audit/sample.parquet long.csv --model model --compare a,z", "no model is called 'z'",
     "estimate audit/sample.parquet long.csv --model model --compare a,b"),
    ("estimate audit/sample.parquet long.csv", "--model COL",
     "estimate audit/sample.parquet long.csv --model model"),
    ("estimate audit/sample.parquet models.csv", "--compare A,B", "estimate audit/sample.parquet models.csv "
     "--compare a,b"),
    ("estimate study", "stratal study label study", "study status study"),
    ("report study --output r.html", "stratal study label study", "study status study"),
    # ---- samples from elsewhere, and options that would be ignored
    (f"{ELSEWHERE} --chosen random", "--population-size N", f"{ELSEWHERE} --population-size 500"),
    (f"{ELSEWHERE} --chosen random-within:kind", "sizes",
     f"{ELSEWHERE} --chosen random-within:kind --sizes sizes.csv"),
    (
        f"{ELSEWHERE} --chosen random-within:kind --cluster kind --weight weight",
        "clusters and strata must be in different columns",
        f"{ELSEWHERE} --chosen random-within:kind --weight weight",
    ),
    (f"{ELSEWHERE} --population-size 3", "more", f"{ELSEWHERE} --population-size 500"),
    (f"{ESTIMATE} --chosen random-within:kind", "with a table of labels", ESTIMATE),
    (f"{ESTIMATE} --weight weight", "with a table of labels", ESTIMATE),
    (f"{ESTIMATE} --sizes sizes.csv", "with a table of labels", ESTIMATE),
    (f"{ESTIMATE} --population-size 500", "with a table of labels", ESTIMATE),
    # ---- drawing
    ("draw p.csv --proxy confidence --budget 40 --output audit", "not empty", DRAW),
    ("draw p.csv --proxy confidence --budget 40 --output p.csv", "is not a directory", DRAW),
    ("draw p.csv --extend audit/sample.parquet --output new", "--additional N", "draw p.csv --extend "
     "audit/sample.parquet --labels labels.csv --additional 5 --output new"),
    ("draw p.csv --extend audit/sample.parquet --labels labels.csv --additional 0 --output new", "1 to",
     None),
    ("draw p.csv --extend p.csv --labels labels.csv --additional 5 --output new", "For a sample: --extend",
     None),
    # ---- plans without a file
    ("plan --budget 40", "--population-size N", "plan --population-size 500 --budget 40"),
    ("plan --population-size 500", "either a budget or a half-width", None),
    ("plan --population-size 500 --rate 90 --budget 40", "write 0.9", "plan --population-size 500 --rate 0.9 "
     "--budget 40"),
    ("plan --population-size 500 --rate 0.9 --half-width 3", "write 0.03", "plan --population-size 500 "
     "--rate 0.9 --half-width 0.05"),
    ("plan --population-size 500 --proxy confidence --budget 40", "--proxy with FILE", PLAN),
    (f"{PLAN} --population-size 500", "without FILE", PLAN),
    (f"{PLAN} --rate 0.9", "without FILE", PLAN),
    ("plan --population-size 500 --budget 600", "larger than the population", None),
    # ---- words for methods, quantities and files
    (f"{SIMULATE} --confidence-level 95", "write 0.95", f"{SIMULATE} --confidence-level 0.95"),
    (f"{PLAN} --stratify features", "--features COL", f"{PLAN} --stratify features --features confidence"),
    (f"{PLAN} --estimand f1:dog", "--predicted COL", f"{PLAN} --estimand f1:dog --predicted answer"),
    (f"{PLAN} --estimand f1:bird --predicted answer", "allowed: 'cat', 'dog'",
     f"{PLAN} --estimand f1:dog --predicted answer"),
    (f"{PLAN} --estimand f1 --predicted answer", "'f1:match'",
     f"{PLAN} --estimand f1:dog --predicted answer"),
    (f"{PLAN} --estimand fone:dog --predicted answer", "'f1'.*…", None),
    (f"{PLAN} --memory lots", "500MB", f"{PLAN} --memory 500MB"),
    (f"{ESTIMATE} --post-stratify kind", "--groups kind", None),
    ("study export study --annotator ann --output items.txt", "Call it items.html",
     "study export study --annotator ann --output items.html"),
]  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with predictions, a drawn sample, and labels of many kinds."""
    folder = tmp_path_factory.mktemp("world")
    generator = np.random.default_rng(0)
    ids = [f"u{number}" for number in range(500)]
    confidence = generator.beta(3, 1, 500).round(4)
    kinds = generator.choice(["cat", "dog"], 500)
    answers = generator.choice(["cat", "dog"], 500)
    right = (generator.random(500) < confidence).astype(int)
    columns = ["id", "confidence", "kind", "answer"]
    write(folder / "p.csv", columns, zip(ids, confidence, kinds, answers, strict=True))
    write(folder / "truth.csv", ["id", "confidence", "right"], zip(ids, confidence, right, strict=True))
    (folder / "empty.csv").write_text("")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, more in (("audit", ""), ("classes", "--predicted answer")):
            run(f"draw p.csv --proxy confidence --budget 40 --seed 1 --output {name} {more}")
        asked = "--question Right? --choices Pass,Fail --annotators ann"
        run(f"study new audit {asked} --output study")
    drawn = [
        row["id"] for row in csv.DictReader((folder / "audit" / "to_label.csv").read_text().splitlines())
    ]
    own = dict(zip(ids, answers.tolist(), strict=True))
    z = dict(zip(ids, right.tolist(), strict=True))
    true = {unit: own[unit] if z[unit] else {"cat": "dog", "dog": "cat"}[own[unit]] for unit in drawn}
    tables = {
        "labels": [(unit, z[unit]) for unit in drawn],
        "classes": [(unit, true[unit]) for unit in drawn],
        "shouted": [(unit, true[unit].upper()) for unit in drawn],
        "right": [(unit, z[unit]) for unit in drawn],
        "strangers": [*((unit, z[unit]) for unit in drawn), ("u-unknown", 1)],
        "twice": [(drawn[0], 1), *((unit, z[unit]) for unit in drawn)],
        "words": [(unit, ["dreadful", "splendid"][z[unit]]) for unit in drawn],
    }
    for name, rows in tables.items():
        write(folder / f"{name}.csv", ["id", "label"], rows)
    write(folder / "noids.csv", ["name", "label"], tables["labels"])
    write(folder / "statuses.csv", ["id", "label", "status"], [(*row, "maybe") for row in tables["labels"]])
    write(folder / "models.csv", ["id", "a", "b"], [(unit, z[unit], 1) for unit in drawn])
    write(folder / "long.csv", ["id", "model", "label"],
          [(unit, name, z[unit] if name == "a" else 1) for unit in drawn for name in "ab"])  # fmt: skip
    write(folder / "elsewhere.csv", ["right", "kind", "weight"],
          [(number % 3 > 0, "ab"[number % 2], 8 + number % 2) for number in range(60)])  # fmt: skip
    write(folder / "sizes.csv", ["stratum", "size"], [("a", 200), ("b", 300)])
    return folder


@pytest.fixture
def world(files, tmp_path, monkeypatch):
    """A fresh folder with the same files, so that no command sees another's."""
    for entry in files.iterdir():
        (tmp_path / entry.name).symlink_to(entry)
    monkeypatch.chdir(tmp_path)
    return tmp_path


WORKED: set[str] = set()
"""Remedies that were run: many mistakes have the same one, and none leaves anything that it could meet."""


def test_there_are_at_least_120_mistakes():
    assert len({line for line, _, _ in ROWS}) >= 120


@pytest.mark.parametrize(("line", "remedy", "right"), ROWS, ids=[line for line, _, _ in ROWS])
def test_a_mistake_names_its_remedy_and_the_remedy_works(world, line, remedy, right):
    before = sorted(path.name for path in world.iterdir())
    done = invoke(line)

    assert isinstance(done.exception, StratalError), (done.exit_code, done.output, done.exception)
    assert re.search(remedy, str(done.exception)), str(done.exception)
    assert sorted(path.name for path in world.iterdir()) == before
    if right is not None and right not in WORKED:
        run(right)
        WORKED.add(right)


def test_ids_may_be_in_a_column_of_another_name(world):
    run("estimate audit/sample.parquet noids.csv --id name")
