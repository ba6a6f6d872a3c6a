"""`ColumnRoles`: the columns with the model's answers and with judges.

A new role needs an entry of `ROLES` and a field of each class in this module, an option in `RoleOptions`
(`cli/options.py`), and a line in the docstring of `Population.read`. Populations, samples, plans and studies
store all roles, and the commands pass all of them on, without the name of any.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeAlias, TypedDict

from stratal.arrays import AnyArray, Record, field_names, field_values, number_of_text
from stratal.errors import InputError
from stratal.protocols import Keywords


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """A role of columns, and how it is declared.

    Parameters
    ----------
    field : str
        Its field in `ColumnRoles`.
    keyword : str
        The keyword of functions, and the option of commands, by which it is declared.
    several : bool
        Whether several columns may have it.
    """

    field: str
    keyword: str
    several: bool = False

    def columns(self, roles: ColumnRoles) -> tuple[str, ...]:
        """Return the columns that have the role."""
        return _names(roles.keywords[self.keyword])

    def value(self, columns: Sequence[str]) -> str | tuple[str, ...] | None:
        """Return columns as the field of `ColumnRoles` stores them."""
        if self.several:
            return tuple(columns)
        return next(iter(columns), None)


ROLES = (
    Role(field="answer", keyword="predicted"),
    Role(field="judges", keyword="judge", several=True),
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ColumnRoles(Record):
    """The columns that have a role. A sample stores their categories, unless they are proxies.

    Parameters
    ----------
    answer : str, optional
        The model's answer.
    judges : tuple of str
        Verdicts of judges, or proxies that are their scores.
    other_answers : tuple of str
        Answers of other models, from which a proxy is computed. A sample does not store them.
    """

    answer: str | None = None
    judges: tuple[str, ...] = ()
    other_answers: tuple[str, ...] = ()

    @classmethod
    def of(cls, columns: Mapping[str, Sequence[str]]) -> Self:
        """Return the roles from a mapping of keyword to the columns that it declares."""
        values: Keywords = {role.field: role.value(columns.get(role.keyword, ())) for role in ROLES}
        return cls(**values)

    @property
    def fields(self) -> Keywords:
        """The fields of this class, without those of subclasses."""
        return field_values(self, field_names(ColumnRoles))

    @property
    def stored_columns(self) -> tuple[str, ...]:
        """The columns that a sample stores, each once."""
        return tuple(dict.fromkeys(name for role in ROLES for name in role.columns(self)))

    @property
    def keywords(self) -> Keywords:
        """The declared columns of each role, by its keyword."""
        columns = field_values(self, (role.field for role in ROLES))
        return {role.keyword: columns[role.field] for role in ROLES}


class RoleKeywords(TypedDict, total=False):
    """The keywords that declare roles."""

    predicted: str | None
    judge: str | Sequence[str] | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeclaredRoles(Record):
    """Roles by the keywords of a function; `predicted` may also state whether labels are compared."""

    predicted: bool | str | None = None
    judge: tuple[str, ...] = ()

    @property
    def roles(self) -> ColumnRoles:
        """The columns that are named."""
        values = field_values(self, (role.keyword for role in ROLES))
        return ColumnRoles.of(
            {keyword: () if isinstance(value, bool) else _names(value) for keyword, value in values.items()}
        )


# Function of a keyword and its value that returns the names of columns in the value.
ReadNames: TypeAlias = Callable[[str, Any], Sequence[str]]


def declared_columns(declarations: RoleKeywords, read: ReadNames) -> dict[str, Sequence[str]]:
    """Return the columns of each role by keyword; `read` returns them from the value of a keyword."""
    return {role.keyword: read(role.keyword, declarations.get(role.keyword)) for role in ROLES}


# A judge with more distinct numbers with decimals gives scores, not verdicts.
_MAX_FRACTIONS = 10


def refuse_unusable_roles(roles: ColumnRoles, groups: Mapping[str, AnyArray]) -> None:
    """Refuse judges that labels could not be compared with, before anything is labelled.

    `groups` are the stored columns (n,) of the drawn units, which are not proxies. Numbers with decimals in
    them are refused, because no label would ever equal them. Scores together with verdicts are refused,
    because they are compared with labels in different ways.
    """
    verdicts = [judge for judge in roles.judges if judge in groups]
    for judge in verdicts:
        numbers = [number_of_text(str(value)) for value in set(groups[judge].tolist())]
        fraction_count = sum(math.isfinite(number) and not number.is_integer() for number in numbers)
        if fraction_count > _MAX_FRACTIONS:
            raise InputError(
                f"judge {judge!r} contains scores, not verdicts",
                given=f"{fraction_count} numbers with decimal places",
                action=f"Also declare it as a proxy: proxy=[…, {judge!r}] (--proxy …,{judge}).",
            )
    if 0 < len(verdicts) < len(roles.judges):
        scores = [judge for judge in roles.judges if judge not in verdicts]
        raise InputError(
            "judges that give scores cannot be declared together with judges that give verdicts",
            given=f"scores {', '.join(scores)}; verdicts {', '.join(verdicts)}",
            action="Declare judges of one kind only: judge= (--judge).",
        )


def refuse_revealing_columns(shown: Iterable[str], proxies: Collection[str], roles: ColumnRoles) -> None:
    """Refuse shown columns that would influence the annotators: proxies, answers of models and verdicts.

    All names must be those of the table: typed names may differ from them in case.
    """
    refused = {*proxies, *roles.stored_columns, *roles.other_answers}
    revealing = [name for name in shown if name in refused]
    if not revealing:
        return
    name = revealing[0]
    action = (
        "Show only what a person needs to judge the unit: no proxy, no verdict, and no answer of a model."
    )
    if name == roles.answer:
        declaration = "leave out predicted= (--predicted)"
        # `predicts=` is only accepted for a proxy.
        if proxies:
            declaration += " and state predicts='right' (--predicts right)"
        action = (
            f"If annotators name the class, leave {name!r} out of show= (--show), because they must not see "
            f"the answer. If they judge whether the answer is right, {declaration}: annotators then see the "
            "answer."
        )
    raise InputError(f"show= (--show): {name!r} would influence the annotators", action=action)


def _names(value: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return one name, several names or no name as a tuple."""
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    return tuple(value)
