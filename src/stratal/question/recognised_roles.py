"""The roles of a table's columns: those that the user states, those that are recognised, and questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from stratal.errors import InputError
from stratal.protocols import JsonDict
from stratal.question.column_kinds import NEUTRAL_NAME, is_score_from_0_to_1, label_certainty, may_be_proxy
from stratal.question.facts import ColumnFacts
from stratal.question.vocabulary import success_word


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleQuestion:
    """The question which column has a needed role, if several columns or none may have it.

    Parameters
    ----------
    role : str
    text : str
        The problem, for an error message.
    candidates : tuple of str
        Columns that may have the role.
    options : tuple of str
        Arguments that answer the question, such as `value='human' (--value human)`.
    is_ambiguous : bool
        Whether several columns may have the role; otherwise none is recognised.
    """

    role: str
    text: str
    candidates: tuple[str, ...]
    options: tuple[str, ...]
    is_ambiguous: bool = True

    def is_answerable(self, columns: Mapping[str, ColumnFacts]) -> bool:
        """Return whether a column may have the role: a table without labels has no column of labels."""
        if self.role != "value":
            return True
        return self.is_ambiguous and any(
            columns[name].is_partial or label_certainty(columns[name]) > NEUTRAL_NAME
            for name in self.candidates
        )

    def error(self, table_name: str) -> InputError:
        """Return the error that asks for the column of a table with the role."""
        return InputError(
            f"{table_name}: {self.text}",
            given=", ".join(map(repr, self.candidates)) or None,
            action=f"State it: {', or '.join(self.options)}.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Recognition:
    """The recognised roles of a table's columns.

    Parameters
    ----------
    n_rows : int
    id : str, optional
    value : str, optional
        Column of the labels.
    answer : str, optional
        Column of the model's answers, which labels are compared with.
    judges : tuple of str
    proxy : str, optional
    model : str, optional
        Column of the models' names, in a table with a row per item and model.
    models : tuple of str
        Columns with the outcomes of several models.
    groups : tuple of str
        Columns of categories by which results may be reported.
    scores : tuple of str
        Columns that may be the proxy, the most probable first.
    questions : tuple of RoleQuestion
    notes : tuple of str
        Notes on optional roles that several columns may have, and on duplicate ids.
    columns : mapping of name to ColumnFacts
    """

    n_rows: int
    id: str | None = None
    value: str | None = None
    answer: str | None = None
    judges: tuple[str, ...] = ()
    proxy: str | None = None
    model: str | None = None
    models: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    scores: tuple[str, ...] = ()
    questions: tuple[RoleQuestion, ...] = ()
    notes: tuple[str, ...] = ()
    columns: Mapping[str, ColumnFacts] = field(default_factory=dict)

    def with_question(self, question: RoleQuestion) -> Recognition:
        """Return the recognition with another question."""
        return replace(self, questions=(*self.questions, question))

    def with_notes(self, *notes: str) -> Recognition:
        """Return the recognition with further notes."""
        return replace(self, notes=(*self.notes, *notes))

    @property
    def possible_labels(self) -> tuple[str, ...]:
        """Columns that may contain the labels by their names, if none is recognised."""
        names = [
            name for question in self.questions if question.role == "value" for name in question.candidates
        ]
        return tuple(name for name in names if label_certainty(self.columns[name]) > NEUTRAL_NAME)

    @property
    def positive_class(self) -> str | None:
        """The class that means success, if labels have two classes and are not compared with answers.

        None if no class means success, as for the labels spam and ham: the user has to name one.
        """
        labels = self.columns.get(self.value or "")
        # Numbers and verdicts need no positive class.
        if labels is None or labels.is_number or labels.verdicts is not None or self.answer is not None:
            return None
        return success_word(labels.values or ())

    @property
    def plan_proxy(self) -> str | None:
        """The proxy of a plan: the recognised one, or the most probable score."""
        return self.proxy or next(iter(self.scores), None)

    @property
    def further_scores(self) -> tuple[str, ...]:
        """Columns with scores from 0 to 1 in every row that a plan can use together with its proxy.

        Columns that are named as probabilities are left out: they may be those of the classes.
        """
        proxy = self.columns.get(self.plan_proxy or "")
        if proxy is None or not (proxy.is_complete and proxy.is_probability):
            return ()
        # Columns with another role are no further scores.
        roles = (self.plan_proxy, self.value, self.answer)
        return tuple(
            column.name
            for column in self.columns.values()
            if column.name not in roles and may_be_proxy(column) and is_score_from_0_to_1(column)
        )

    def sentence(self, reason_unused: str | None = None) -> str:
        """Return the roles in one line; `reason_unused` states why the estimate does not use the proxy."""
        parts = []
        if self.models:
            parts.append(f"models: {', '.join(f'`{name}`' for name in self.models)}")
        if self.model is not None:
            count = ""
            if self.model in self.columns:
                count = f" ({self.columns[self.model].n_distinct:,})"
            parts.append(f"models: `{self.model}`{count}")
        if self.judges:
            judges = ", ".join(self._judge_text(name) for name in self.judges)
            correction = ""
            if reason_unused is not None and self.proxy in self.judges:
                correction = f", which does not correct the estimate ({reason_unused})"
            parts.append(f"judge: {judges}{correction}")
        if self.answer is not None:
            parts.append(f"the model's answer: `{self.answer}`")
        if self.proxy is not None and self.proxy not in self.judges:
            reason = f" (not used: {reason_unused})" if reason_unused else ""
            parts.append(f"proxy: `{self.proxy}`{reason}")
        if self.value is not None and not self.models:
            labels = self.columns.get(self.value)
            # The column of first labels of several annotators has no facts.
            n_labelled = self.n_rows if labels is None else labels.n_entries
            parts.append(f"labels: `{self.value}` in {n_labelled:,} of {self.n_rows:,} rows")
        return "; ".join(parts)

    @property
    def options(self) -> list[str]:
        """Arguments of a command that name the recognised columns, such as `--value` and `human`."""
        columns = {
            "--value": self.value,
            "--id": self.id,
            "--predicted": self.answer,
            "--judge": ",".join(self.judges),
            "--proxy": None if self.proxy in self.judges else self.proxy,
            "--model": self.model,
            "--compare": ",".join(self.models),
        }
        return [word for option, name in columns.items() if name for word in (option, name)]

    def _judge_text(self, name: str) -> str:
        """Return the name of a judge with its verdicts, the one with the largest number first."""
        facts = self.columns.get(name)
        numbers = None if facts is None else facts.verdicts
        if not numbers:
            return f"`{name}`"
        verdicts = sorted(numbers, key=lambda verdict: -numbers[verdict])
        return f"`{name}` ({'/'.join(verdicts)})"

    def to_dict(self) -> JsonDict:
        """Return the recognised roles as a JSON-serializable dict."""
        roles: JsonDict = {
            "id": self.id,
            "label": self.value,
            "predicted": self.answer,
            "judge": list(self.judges),
            "proxy": self.proxy,
            "model": self.model,
            "compare": list(self.models),
        }
        return {name: value for name, value in roles.items() if value not in (None, [])}

    def require_answered(self, table_name: str) -> None:
        """Raise the error of the first question, if there is one."""
        for question in self.questions:
            raise question.error(table_name)

    @property
    def has_models(self) -> bool:
        """Whether the table has outcomes of several models, in rows or in columns."""
        return self.model is not None or bool(self.models)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedRoles:
    """Roles that the user states: None if nothing is stated, and empty if no column has the role.

    `groups` are columns by which results are reported or weighted, such as the model's answers.
    """

    id: str | None = None
    value: str | None = None
    answer: str | None = None
    # Whether labels are compared with the model's answers, which are then a column.
    is_compared: bool | None = None
    judges: tuple[str, ...] | None = None
    # Whether the user states that no column is a judge: a column of verdicts is then no proxy either.
    no_judge: bool = False
    proxies: tuple[str, ...] | None = None
    model: str | None = None
    models: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    # Columns with a role that is not recognised, such as features.
    others: tuple[str, ...] = ()

    @property
    def columns(self) -> set[str | None]:
        """The columns with a stated role, and possibly None."""
        names = {self.id, self.value, self.answer, self.model, *self.models, *self.groups, *self.others}
        return names.union(self.judges or (), self.proxies or ())
