"""Every option has an effect or is refused: each is added to each way of using the command."""

from __future__ import annotations

import json
import shutil
from itertools import count

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import stratal
from stratal.cli.application import app, commands
from stratal.designs.sample_file import sample_digest
from stratal.errors import StratalError

NUMBERS = count()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("effects")
    rng, numbers = np.random.default_rng(3), np.arange(300)
    proxy = rng.beta(3, 1, 300)
    frame = pd.DataFrame(
        {
            "id": [f"u{k}" for k in numbers],
            "p": proxy,
            "q": rng.beta(1, 3, 300),
            "moment": proxy**1.5,
            "language": np.array(["de", "en", "fr"])[numbers % 3],
            "other": [f"x{k}" for k in numbers],
            "size": 1 + numbers % 7,
            "z": (rng.random(300) < proxy).astype(float),
        }
    )
    frame.to_csv(folder / "p.csv", index=False)
    frame.to_parquet(folder / "p.parquet")
    units = stratal.Population.read(folder / "p.csv", proxy="p", groups=["language", "z"])
    sample = stratal.plan(units, budget=60).draw(seed=1)
    sample.write(folder / "s.parquet")
    given = frame.set_index("id").loc[sample.ids.tolist()]
    labels = pd.DataFrame(
        {
            "id": sample.ids,
            "label": given["z"].to_numpy(),
            "answer": np.arange(sample.size) % 2.0,
            "w": 1.0 + given["p"],
        }
    )
    labels.assign(
        second=1 - labels["label"], language=given["language"].to_numpy(), p=given["p"].to_numpy()
    ).to_csv(folder / "l.csv", index=False)
    pd.DataFrame({"stratum": ["de", "en", "fr"], "size": [100, 100, 100]}).to_csv(
        folder / "sizes.csv", index=False
    )
    return folder


def answered(place, words):
    """Run a command; what it printed and wrote, or None where it refused."""
    folder = place / f"out{next(NUMBERS)}"
    words = [word.format(place=place, out=folder) for word in words]
    result = CliRunner().invoke(app, words, env={"COLUMNS": "200"})
    found = {}
    if folder.is_dir():
        sample = stratal.Sample.read(next(folder.glob("sample*.parquet")))
        found = {"sample": sample_digest(sample)}
        shutil.rmtree(folder)
    if result.exit_code:
        assert isinstance(result.exception, StratalError | SystemExit), result.exception
        return None
    return result.stdout.replace(str(folder), ""), found


DRAW = ["draw", "{place}/p.csv", "--output", "{out}", "--proxy", "p"]
BASES = {
    "draw": [*DRAW, "--budget", "60"],
    "draw stratified": [*DRAW, "--budget", "60", "--design", "stratified"],
    "draw random": [*DRAW, "--budget", "60", "--design", "simple-random"],
    "draw poisson": [*DRAW, "--budget", "60", "--design", "poisson"],
    "draw binary": [*DRAW, "--budget", "60", "--outcome", "binary"],
    "draw sized": [*DRAW, "--budget", "60", "--design", "proportional-to-size"],
    "draw systematic": [*DRAW, "--budget", "60", "--design", "systematic"],
    "draw clusters": [*DRAW, "--budget", "100", "--design", "clusters", "--cluster", "size"],
    "draw none": [*DRAW, "--budget", "60", "--stratify", "none"],
    "draw category": [*DRAW, "--budget", "60", "--stratify", "category", "--by", "language"],
    "draw width": [*DRAW, "--half-width", "0.08"],
    "draw extend": [
        *DRAW[:4], "--extend", "{place}/s.parquet", "--labels", "{place}/l.csv", "--additional", "20",
    ],
    "draw parquet": ["draw", "{place}/p.parquet", *DRAW[2:], "--budget", "60"],
    "draw bare": [*DRAW[:4], "--budget", "60"],
    "plan": ["plan", "{place}/p.csv", "--proxy", "p", "--budget", "60"],
    "plan none": ["plan", "{place}/p.csv", "--proxy", "p", "--budget", "60", "--stratify", "none"],
    "plan parquet": ["plan", "{place}/p.parquet", "--proxy", "p", "--budget", "60"],
    "plan of no file": ["plan", "--population-size", "5000", "--half-width", "0.05"],
    "doctor": ["doctor", "{place}/p.csv"],
    "doctor proxy": ["doctor", "{place}/p.csv", "--proxy", "p"],
    "estimate": ["estimate", "{place}/s.parquet", "{place}/l.csv"],
    "estimate binary": ["estimate", "{place}/s.parquet", "{place}/l.csv", "--outcome", "binary"],
    "estimate unbounded": ["estimate", "{place}/s.parquet", "{place}/l.csv", "--outcome", "unbounded"],
    "estimate plain": ["estimate", "{place}/s.parquet", "{place}/l.csv", "--estimator", "horvitz-thompson"],
    "estimate calibrated": [
        *("estimate", "{place}/s.parquet", "{place}/l.csv", "--calibration", "isotonic"),
        *("--population", "{place}/p.csv"),
    ],
    "estimate by level": ["estimate", "{place}/s.parquet", "{place}/l.csv", "--estimand", "mean@language"],
    "estimate one class": [
        *("estimate", "{place}/s.parquet", "{place}/l.csv", "--value", "answer"),
        *("--estimand", "recall:1.0,predicted=z"),
    ],
    "estimate elsewhere": [
        *("estimate", "{place}/l.csv", "--chosen", "random-within:language", "--sizes", "{place}/sizes.csv"),
        *("--value", "label", "--predicted", "none"),
    ],
}  # fmt: skip
OPTIONS = {
    "draw": [
        "--seed 3",
        "--strata 4", "--stratify equal-size", "--by language", "--allocation equal", "--minimum 8",
        "--minimum 1000",
        "--cluster language", "--labels {place}/l.csv", "--value answer",
        "--additional 5",
        "--confidence-level 0.8", "--features q", "--margin", "--delimiter ;", "--budget 50",
        "--half-width 0.09", "--groups other", "--show other", "--predicted language", "--bounds 0,2",
    ],
    "plan": [
        "--strata 4", "--stratify equal-size", "--by language", "--allocation equal", "--minimum 8",
        "--minimum 1000", "--confidence-level 0.8", "--features q", "--delimiter ;", "--half-width 0.09",
        "--margin",
    ],
    "doctor": ["--bounds 0,2", "--margin", "--delimiter ;", "--groups language"],
    "estimate": [
        "--chosen random-within:language", "--sizes {place}/sizes.csv", "--weight w",
        "--population-size 600", "--proxy p",
        "--class 1", "--population {place}/p.csv", "--bounds 0,2",
        "--cross-fit 4", "--calibration isotonic", "--confidence-level 0.8", "--by language",
        "--target superpopulation", "--interval t", "--compare answer,second", "--outcome unbounded",
        "--estimator difference", "--winsorise 0.2,0.8",
    ],
}  # fmt: skip
PAIRS = [(base, option) for base in BASES for option in OPTIONS.get(base.split()[0], ())]
AS_AUTO = {("estimate unbounded", "--interval t"), ("estimate calibrated", "--estimator difference")}
"""Options that say what is done without them."""

IDLE = [
    *[("draw random", f"--{name}") for name in ("strata 4", "by language", "allocation equal", "minimum 8")],
    *[("draw poisson", f"--{name}") for name in ("half-width 0.09", "cluster language", "by language")],
    *[("draw", f"--{name}") for name in ("minimum 1000", "cluster language", "additional 5")],
    *[("draw", f"--{name}") for name in ("labels {place}/l.csv", "features q", "confidence-level 0.8")],
    *[("draw extend", f"--{name}") for name in ("budget 50", "seed 3", "design poisson", "strata 4")],
    *[("draw bare", f"--{name}") for name in ("strata 4", "margin")],
    *[("draw parquet", "--delimiter ;"), ("plan none", "--strata 4"), ("plan none", "--minimum 8")],
    *[
        ("estimate", f"--{name}")
        for name in ("chosen random-within:language", "weight w", "class 1", "population-size 600")
    ],
    ("estimate binary", "--bounds 0,2"),
    ("draw binary", "--bounds 0,2"),
    *[("draw extend", f"--{name}") for name in ("estimand mean", "residual-sd 0.3")],
    *[("draw sized", "--residual-sd 0.3"), ("draw random", "--stratify k-means --estimand mean@language")],
    ("plan", "--assume optimistic"),
    *[("plan of no file", f"--{name}") for name in ("id id", "proxy p", "predicted z", "margin")],
    *[("plan of no file", f"--{name}") for name in ("delimiter ;", "softmax p,q", "missing own-stratum")],
    *[("plan of no file", f"--{name}") for name in ("remote", "threads 1", "memory 1GB", "label 1,5")],
    *[("plan of no file", f"--{name}") for name in ("engine spark", "assume optimistic", "residual-sd 0.3")],
    *[("estimate by level", f"--{name}") for name in ("metric accuracy", "compare answer,second")],
]


@pytest.mark.parametrize(("base", "option"), IDLE, ids=[f"{base}: {option}" for base, option in IDLE])
def test_what_would_have_no_effect_is_refused_by_name(place, base, option):
    words = [word.format(place=place, out=place / "never") for word in (*BASES[base], *option.split())]
    result = CliRunner().invoke(app, words)

    assert isinstance(result.exception, StratalError)
    assert str(result.exception).startswith(f"{option.split()[0]} would have no effect")
    assert not (place / "never").exists()


def test_a_metric_has_the_interval_that_is_asked_for_or_says_which_it_has(place):
    words = [word.format(place=place) for word in BASES["estimate one class"]]
    found = json.loads(CliRunner().invoke(app, [*words, "--interval", "t", "--json"]).stdout)
    refused = CliRunner().invoke(app, [*words, "--interval", "betting"])

    assert found["interval_method"] == "t"
    assert all(repr(method) in refused.exception.allowed for method in ("auto", "t", "normal"))


@pytest.mark.parametrize("groups", ["--by language", "--estimand mean@language"])
def test_groups_have_the_interval_that_is_asked_for_or_refuse_it(place, groups):
    words = [word.format(place=place) for word in (*BASES["estimate"], *groups.split())]
    sample = stratal.Sample.read(place / "s.parquet")
    rows = stratal.estimate(sample, stratal.read_labels(place / "l.csv"), by="language")

    for method in ("auto", "t", "normal", "survey"):
        found = json.loads(CliRunner().invoke(app, [*words, "--interval", method, "--json"]).stdout)
        groups_found = found.get("domains") or found["estimands"]
        assert [row["confidence_interval"] for row in groups_found] == [
            pytest.approx([*row.confidence_interval(0.95, method)]) for row in rows
        ]
    for method in ("korn-graubard", "clopper-pearson"):
        refused = CliRunner().invoke(app, [*words, "--interval", method])
        assert isinstance(refused.exception, StratalError)
        assert repr(method) in str(refused.exception.given)
        assert "'survey'" in str(refused.exception.allowed)
        assert "--by" in str(refused.exception.action)


@pytest.mark.parametrize(
    ("options", "rows"),
    [({"metric": ["recall", "f1"]}, "metrics"), ({"compare": ["model", "other"]}, "comparisons")],
)
def test_metrics_and_comparisons_have_the_interval_that_is_asked_for(options, rows):
    random = np.random.default_rng(5)
    truth = random.integers(0, 2, 120)
    wrong = {name: random.random(120) < share for name, share in (("model", 0.1), ("other", 0.3))}
    names = np.array(["ham", "spam"])
    table = {"id": np.arange(120).astype(str), "label": names[truth]}
    table |= {name: names[np.where(is_wrong, 1 - truth, truth)] for name, is_wrong in wrong.items()}
    table = pd.DataFrame(table)

    def evaluated(interval):
        predicted = "model" if "metric" in options else None
        return stratal.evaluate(
            table, value="label", predicted=predicted, judge="none", interval=interval, **options
        )

    result = evaluated("t")
    (rows_of_table,) = [part for part in result.tables if part.kind == rows] or [result.estimate]
    assert [row["confidence_interval"] for row in result.to_dict()[rows]] == [
        pytest.approx([*row.confidence_interval(0.95, "t")]) for row in rows_of_table
    ]
    assert [row["confidence_interval"] for row in evaluated("auto").to_dict()[rows]] != [
        row["confidence_interval"] for row in result.to_dict()[rows]
    ]
    if rows == "metrics":  # a comparison is one of means of all units
        with pytest.raises(StratalError, match="only for the mean of all units"):
            evaluated("korn-graubard")


@pytest.fixture(scope="module")
def plain(place):
    return {base: answered(place, words) for base, words in BASES.items()}


@pytest.mark.slow
@pytest.mark.parametrize(("base", "option"), PAIRS, ids=[f"{base}: {option}" for base, option in PAIRS])
def test_an_option_has_an_effect_or_is_refused(place, plain, base, option):
    assert plain[base] is not None, base
    words = BASES[base]
    name = option.split()[0]
    if name in words or (base, option) in AS_AUTO:
        return
    assert answered(place, [*words, *option.split()]) != plain[base]


@pytest.mark.parametrize(
    ("option", "advice"),
    [
        ("--rate 90%", "Given: '90%'. Write 0.9."),
        ("--rate=0,9", "Given: '0,9'. Write 0.9."),
        ("--half-width 3%", "Write 0.03."),
        ("--half-width 0,05", "Write 0.05."),
        ("--half-width 0.05,many", "Given: '0.05,many'."),
        ("--population-size 5,000", "Write 5000 or 5.000, depending on what you mean."),
        ("--budget 1e3", "Write 1000."),
        ("--budget many", "Given: 'many'."),
    ],
)
def test_numbers_as_people_write_them_get_advice(option, advice):
    done = CliRunner().invoke(app, ["plan", *option.split()])

    assert done.exit_code == 2
    assert advice in " ".join(done.output.split())


def single_options():
    """Yield the commands with each option of theirs that takes one value, and two values for it."""

    for name, command in commands().items():
        for option in command.params:
            if option.param_type_name != "option" or option.multiple or option.name == "help_all":
                continue
            yield name, option


def is_list(option):
    return option.name in ("estimand", "require") or ",…" in (option.metavar or "")


def test_an_option_of_one_value_is_refused_where_it_is_given_twice():
    checked = 0
    for name, option in single_options():
        words = [option.opts[-1]] if option.is_flag else [option.opts[-1], "7"]
        others = option.secondary_opts[:1] if option.is_flag else [option.opts[0], "8"]
        if not others:
            continue  # a flag without an opposite, given twice, says the same
        result = CliRunner().invoke(app, [*name.split(), *words, *others])
        message = f"{result.exception} {result.output}"
        assert ("given twice" in message) != is_list(option), (name, option.name, message)
        if not is_list(option):
            both = " and ".join(map(repr, ("7", "8")))
            assert option.opts[0] in message
            assert option.is_flag or both in message
        checked += 1
    assert checked > 150


def test_every_help_that_shows_a_list_declares_it():
    for name, option in single_options():
        assert ",…" not in (option.help or ""), (name, option.name)


def test_equal_values_given_again_are_one(place):
    bare = answered(place, BASES["draw"])
    assert answered(place, [*BASES["draw"], "--seed=0", "--seed", "0", "--proxy", "p"])[0] == bare[0]


def test_lists_given_in_several_words_are_one_list(place):
    apart = ["--groups", "language", "--groups=z", "--show", "other", "--show", "size"]
    together = ["--groups", "language,z", "--show", "other,size"]
    assert answered(place, [*BASES["draw"], *apart]) == answered(place, [*BASES["draw"], *together])


def test_several_estimands_may_be_given_in_several_words(place):
    audit = ["estimate", "{place}/s.parquet", "{place}/l.csv"]
    apart = answered(place, [*audit, "--estimand", "mean", "--estimand", "mean@language"])
    assert apart[0].count("language") >= 3
    assert apart == answered(place, [*audit, "--estimand", "mean;mean@language"])


@pytest.mark.parametrize(
    "limit", [["--require", "value<=5"], ["--require", "value>=0"], ["--require=value>=nan"]]
)
def test_a_requirement_that_cannot_fail_is_refused(place, limit):
    """--require value<=5 of a share is always met."""
    assert answered(place, ["estimate", "{place}/s.parquet", "{place}/l.csv", *limit]) is None
