"""Every command's `--json` fits its published schema, and every name in it is documented there."""

import json
import shlex
from pathlib import Path

import jsonschema
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.e2e.pasted import write

import stratal
from stratal.cli.application import commands
from stratal.cli.printed import PRINTED, Estimated, command_schema
from stratal.report.estimates import TABLES

SCHEMAS = Path(__file__).parents[3] / "docs" / "schemas"
FILE = "p.parquet --proxy confidence"
STUDY = "--question Right? --choices Pass,Fail --annotators ann,bob --overlap 0.5"

LINES = [
    "doctor p.parquet",
    "doctor p.parquet --proxy confidence --groups language",
    f"plan {FILE} --budget 80",
    f"plan {FILE} --half-width .05",
    f"plan {FILE} --margin --budget 80",
    "plan --population-size 1000 --rate .9 --budget 100",
    f"draw {FILE} --predicted answer --groups language --show text --budget 80 --seed 7 --output drawn",
    f"draw {FILE} --half-width .2 --output pilot",
    "draw p.parquet --extend a/sample.parquet --labels right.csv --half-width .05 --output more",
    "draw p.parquet --extend a/sample.parquet --labels right.csv --half-width .3 --output enough",
    "plan p.parquet --answers answer,language --select",
    "select p.parquet --answers answer,language --output selected",
    "estimate a/sample.parquet right.csv --require value>=.5",
    "estimate a/sample.parquet classes.csv --predicted answer --metric accuracy,f1,mcc --by language",
    "estimate a/sample.parquet right.csv --compare a,b,c",
    "estimate a/sample.parquet right.csv --outcome unbounded --estimator ppi++",
    "estimate st",
    "report a/sample.parquet classes.csv --predicted answer --metric f1 --against p.parquet --output r.html",
    "report a/sample.parquet right.csv --against new.csv --items 20 --output r.html",
    "report a/sample.parquet right.csv --compare a,b,c --output r.html",
    "report st --output r.html",
    "demo --budget 60",
    "simulate q.parquet --proxy confidence --outcome right --budget 50 --replicates 20",
    f"study new a --output new {STUDY}",
    "study status st",
    "study status empty",
    "study check st",
    "study backup st --output copy",
    "study team st",
    "study extend st --additional 5",
    "schema estimate",
    "study export st --to csv --output items.csv",
    "study export st --annotator ann --output page.html",
    "study import st back.csv --from csv --dry-run",
    "doctor right.csv",
    "doctor back.csv",
    "doctor a/own.csv",
    "doctor long.csv",
]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A file of predictions, a drawn sample with labels, and two studies."""
    folder = tmp_path_factory.mktemp("world")
    rng = np.random.default_rng(3)
    true, ids = rng.choice(["cat", "dog"], 400), [f"u{k}" for k in range(400)]
    answer = np.where(rng.random(400) < 0.85, true, "cow")
    right = dict(zip(ids, (answer == true).astype(int).tolist(), strict=True))
    confidence = rng.beta(4, 1, 400)
    columns = {"id": ids, "confidence": confidence, "answer": answer, "text": [f"t{k}" for k in range(400)]}
    languages = {"language": rng.choice(["de", "en"], 400)}
    pq.write_table(pa.table(columns | languages), folder / "p.parquet")
    floats = [float(right[unit]) for unit in ids]
    pq.write_table(pa.table({"id": ids, "confidence": confidence, "right": floats}), folder / "q.parquet")
    population = stratal.Population.read(
        folder / "p.parquet", proxy="confidence", predicted="answer", groups=["language"], show=["text"]
    )
    sample = stratal.plan(population, 80).draw(seed=7)
    (folder / "a").mkdir()
    sample.write(folder / "a" / "sample.parquet")
    drawn = sample.ids.tolist()
    rows = [[unit, right[unit], right[unit], int(unit[1:]) % 2, 1] for unit in drawn]
    write(folder / "right.csv", ["id", "label", "a", "b", "c"], rows)
    write(folder / "a" / "own.csv", ["id", "mark"], [[unit, ""] for unit in drawn])
    long = [[model, item, item / 9] for model in ("m1", "m2") for item in range(9)]
    write(folder / "long.csv", ["model", "question_id", "score"], long)
    write(folder / "classes.csv", ["id", "label"], [[unit, true[int(unit[1:])]] for unit in drawn])
    rows = [[unit, "Pass", "ann"] for unit in drawn]
    write(folder / "back.csv", ["item_id", "label", "annotator"], rows)
    write(folder / "new.csv", ["id", "answer"], [[unit, "cat"] for unit in ids])
    question = stratal.study.StudyQuestion.of_choices("Right?", ["Pass", "Fail"])
    for name in ("st", "empty"):
        with stratal.study.create_study(
            folder / name,
            stratal.plan(population, 24).draw(seed=7),
            question,
            annotators=["ann", "bob"],
            overlap=0.5,
            reading={"file": str(folder / "p.parquet"), "proxy": "confidence"},
        ) as study:
            for person in ("ann", "bob") if name == "st" else ():
                for number in range(12):
                    item = study.next_item(person)
                    if item is not None and number == 3:
                        study.flag(person, item.id)
                        study.skip(person, item.id)
                    elif item is not None:
                        study.submit(person, item.id, "Pass" if right[item.id] else "Fail")
    return folder


def command_of(line):
    """Return the name of the command that a line runs."""
    words = line.split()
    return " ".join(words[:2]) if words[0] == "study" else words[0]


@pytest.mark.filterwarnings("ignore::stratal.errors.StratalWarning")
@pytest.mark.parametrize("line", LINES)
def test_what_is_printed_fits_and_is_documented(world, monkeypatch, run_command, line):
    monkeypatch.chdir(world)
    done = run_command(*shlex.split(line), "--json")

    assert done.stdout, done.message
    found = json.loads(done.stdout)
    schema = command_schema(command_of(line))
    for closed in (False, True):
        for part in schema["$defs"].values() if closed and command_of(line) != "schema" else ():
            part["additionalProperties"] = False
        errors = list(jsonschema.Draft202012Validator(schema).iter_errors(found))
        assert [f"{list(error.absolute_path)}: {error.message[:200]}" for error in errors] == []


def test_every_command_has_a_schema():
    assert set(commands()) == set(PRINTED)


@pytest.mark.parametrize("command", sorted(PRINTED))
def test_the_published_file_is_what_the_command_prints(command, run_command):
    schema = command_schema(command)

    jsonschema.Draft202012Validator.check_schema(schema)
    assert json.loads((SCHEMAS / f"{command.replace(' ', '-')}.json").read_text()) == schema, "run: make docs"
    assert json.loads(run_command("schema", *command.split()).stdout) == schema


def test_an_estimate_may_carry_every_table():
    """What commands print has the tables that a report knows."""
    assert {*TABLES, "leaderboard"} <= set(Estimated.__struct_fields__)


@pytest.mark.parametrize("wrong", [{"estimate": "high"}, {"n": 1.5}, {"strata": [{}]}, {"bounds": [0, "1"]}])
def test_a_wrong_value_is_seen(world, monkeypatch, run_command, wrong):
    monkeypatch.chdir(world)
    found = json.loads(run_command("estimate", "a/sample.parquet", "right.csv", "--json").stdout)

    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(found | wrong, command_schema("estimate"))


def test_an_unknown_command_is_named():
    with pytest.raises(stratal.InputError, match="estimate"):
        command_schema("estimates")
