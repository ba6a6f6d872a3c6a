"""What labels say of judges, in sentences and tables: from the rows that are also printed as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stratal.report.text import Table, interval_text, number, table_of, value_text

Rows = Sequence[Mapping[str, Any]]

MOST_SENTENCES = 3
"""Judges that an answer has a sentence on."""


def by_judge(rows: Rows) -> dict[str, dict[tuple[str, str | None], Mapping[str, Any]]]:
    """Return the rows of each judge by metric and class, without the cells of its table with people.

    Examples
    --------
    >>> by_judge([{"judge": "a", "metric": "kappa", "class": None, "estimate": 0.5}])["a"].keys()
    dict_keys([('kappa', None)])
    """
    found: dict[str, dict[tuple[str, str | None], Mapping[str, Any]]] = {}
    for row in rows:
        if row["metric"] != "share":
            found.setdefault(row["judge"], {})[row["metric"], row.get("class")] = row
    return found


def judge_sentences(rows: Rows, most: int = MOST_SENTENCES) -> list[str]:
    """Return what labels say of each judge in one sentence, and of several how they compare.

    Of two classes the rarer one is what a judge looks for.

    Examples
    --------
    >>> rows = [{"judge": "verdict", "metric": name, "estimate": value, "confidence_interval": ends}
    ...         for name, value, ends in (("agreement", 0.86, [0.81, 0.9]), ("kappa", 0.62, [0.51, 0.72]))]
    >>> judge_sentences(rows)
    ["'verdict' agrees with people on 86.0% (81.0–90.0%), kappa 0.62 (0.51 to 0.72)."]
    """
    known = by_judge(rows)
    together = [own.pop(("consistency", None)) for own in known.values() if ("consistency", None) in own]
    each = {judge: own for judge, own in known.items() if own}
    lines = [_sentence(judge, own) for judge, own in [*each.items()][:most]]
    if len(each) > most:
        lines[-1] += f" {len(each) - most} more: --details."
    lines += [f"Two of them agree with each other on {_briefly(row)}." for row in together]
    return lines + _best_proxy(each)


def _sentence(judge: str, known: Mapping[tuple[str, str | None], Mapping[str, Any]]) -> str:
    if ("agreement", None) not in known:
        parts = [f"{name.replace('_', ' ')} {_briefly(row, share=False)}" for (name, _), row in known.items()]
        return f"{judge!r} and people: {', '.join(parts)}."
    agreed, kappa = (known[name, None] for name in ("agreement", "kappa"))
    found = f"{judge!r} agrees with people on {_briefly(agreed)}, kappa {_briefly(kappa, share=False)}"
    classes = _rarest(known)
    if len(classes) != 2:
        return f"{found}."
    rare, other = classes
    value, ends = (known["recall", other][name] for name in ("estimate", "confidence_interval"))
    missed = {
        "estimate": None if value is None else 1.0 - value,
        "confidence_interval": ends and [None if end is None else 1.0 - end for end in reversed(ends)],
    }
    return (
        f"{found}; it finds {_briefly(known['recall', rare])} of what they call {rare!r}, and calls "
        f"{_briefly(missed)} of the {other!r} so."
    )


def _rarest(known: Mapping[tuple[str, str | None], Mapping[str, Any]]) -> list[str]:
    """Return the classes whose share is known, the rarest among people's labels first."""
    shares = [(row["estimate"], of) for (name, of), row in known.items() if name == "prevalence" and of]
    return [of for share, of in sorted(shares, key=lambda pair: pair[0] or 0.0) if share is not None]


def _briefly(row: Mapping[str, Any], share: bool = True) -> str:
    value, ends = value_text(row["estimate"], share), row["confidence_interval"]
    return value if ends is None else f"{value} ({interval_text(ends, share)})"


def _best_proxy(known: Mapping[str, Mapping[tuple[str, str | None], Mapping[str, Any]]]) -> list[str]:
    """Return which of several judges predicts people best: the correlation says what it is worth as a proxy.

    With a correlation r a label is worth up to 1/(1 − r²) labels without a proxy (Cochran 1977, 7.3).
    """
    found = []
    for judge, own in known.items():
        row = own.get(("pearson", None)) or own.get(("mcc", None))
        if row is not None and row["estimate"] is not None:
            found.append((row["estimate"], judge))
    if len(found) < 2:
        return []
    (best, name), *others = sorted(found, reverse=True)
    rest = ", ".join(f"{judge!r} {number(value)}" for value, judge in others)
    worth = f"; a label is worth up to {1.0 / (1.0 - best**2):.1f} with it" if 0.0 < best < 1.0 else ""
    return [f"Best proxy on these labels: {name!r}, correlation {number(best)} ({rest}){worth}."]


def judge_notes(rows: Rows) -> list[str]:
    """Return the three readings of a share, with the first judge's; nothing of more than two classes."""
    judge, known = next(iter(by_judge(rows).items()))
    classes = _rarest(known)
    if len(classes) != 2 or ("rogan_gladen", classes[0]) not in known:
        return []
    names = ("prevalence", "predicted_prevalence", "rogan_gladen")
    ours, raw, other = (known[name, classes[0]] for name in names)
    return [
        f"the share of {classes[0]!r} is {_briefly(ours)} by the labels; {judge!r} alone says "
        f"{value_text(raw['estimate'], share=True)}, which no label corrects, and Rogan & Gladen's "
        f"correction {_briefly(other)}, which takes labels for a random sample: take the first"
    ]


def judge_tables(rows: Rows, level: str) -> list[Table]:
    """Return the table of all quantities, and for each judge that of people's classes and its own.

    Examples
    --------
    >>> row = {"judge": "v", "metric": "share", "class": "fail", "judged": "pass", "estimate": 0.1,
    ...        "confidence_interval": [0.05, 0.2]}
    >>> print(judge_tables([row], "95% interval")[-1].rows)
    [['fail', '10.0% (5.0–20.0%)']]
    """
    same = {name: name for name in ("judge", "metric", "class", "estimate")}
    columns = {**same, level: "confidence_interval", "n": "n"}
    found = [table_of("Judge", [row for row in rows if row["metric"] != "share"], columns)]
    shares: dict[str, dict[str, dict[str, str]]] = {}
    for row in rows:
        if row["metric"] == "share":
            lines = shares.setdefault(row["judge"], {})
            lines.setdefault(row["class"], {"people's label": row["class"]})[row["judged"]] = _briefly(row)
    for judge, lines in shares.items():
        title, judged = f"Share of all units, by people and by {judge!r}", next(iter(lines.values()))
        found.append(table_of(title, list(lines.values()), list(judged)))
    return found
