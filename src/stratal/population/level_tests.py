"""What tests of units say of each other: which imply others, which exclude others, and what two ask for."""

from __future__ import annotations

from dataclasses import dataclass

from stratal.arrays import Record
from stratal.population.expressions import Agree, ByLevel, Expression, Times


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelSet(Record):
    """Some levels of a group column, or all but these.

    Parameters
    ----------
    name : str
    levels : frozenset of str
    others : bool
        Whether the set is all levels but these.

    Examples
    --------
    >>> is_cat = LevelSet.of(ByLevel(name="answer", levels=("cat",), values=(1.0,)))
    >>> is_cat.excludes(is_cat.rest), is_cat.excludes(is_cat)
    (True, False)
    """

    name: str
    levels: frozenset[str]
    others: bool = False

    @classmethod
    def of(cls, test: Expression | None) -> LevelSet | None:
        """Return the levels that pass a test; None of a test that is no matter of levels."""
        if not isinstance(test, ByLevel) or not {*test.values, test.otherwise} <= {0.0, 1.0}:
            return None
        listed = frozenset(
            level for level, value in zip(test.levels, test.values, strict=True) if value != test.otherwise
        )
        return cls(name=test.name, levels=listed, others=test.otherwise == 1.0)

    @property
    def rest(self) -> LevelSet:
        """All other levels."""
        return LevelSet(name=self.name, levels=self.levels, others=not self.others)

    def excludes(self, other: LevelSet) -> bool:
        """Return whether no level is sure to be in both."""
        if self.name != other.name or (self.others and other.others):
            return False
        if self.others or other.others:
            few, left_out = (other, self) if self.others else (self, other)
            return few.levels <= left_out.levels
        return not self.levels & other.levels

    def both(self, other: LevelSet) -> LevelSet:
        """Return the levels of one column that are in both."""
        if self.others and other.others:
            return LevelSet(name=self.name, levels=self.levels | other.levels, others=True)
        if self.others or other.others:
            few, left_out = (other, self) if self.others else (self, other)
            return LevelSet(name=self.name, levels=few.levels - left_out.levels)
        return LevelSet(name=self.name, levels=self.levels & other.levels)

    @property
    def test(self) -> ByLevel:
        """The formula that is 1 at these levels, else 0."""
        value = 0.0 if self.others else 1.0
        levels = tuple(sorted(self.levels))
        return ByLevel(name=self.name, levels=levels, values=(value,) * len(levels), otherwise=1.0 - value)


def implies(test: Expression, other: Expression | None) -> bool:
    """Return whether every unit that passes a test is sure to pass another.

    It is where both are the same; where fewer models agree; where levels are fewer; and where a test that
    asks for several things asks for that too.

    Examples
    --------
    >>> implies(Agree(names=("a", "b", "c")), Agree(names=("c", "a"))), implies(Agree(names=("a", "b")), None)
    (True, False)
    """
    if other is None:
        return False
    if test == other:
        return True
    if isinstance(test, Agree) and isinstance(other, Agree):
        return set(other.names) <= set(test.names)
    own, wanted = LevelSet.of(test), LevelSet.of(other)
    if own is not None and wanted is not None:
        return own.excludes(wanted.rest)
    return isinstance(test, Times) and any(implies(part, other) for part in test.parts)


def both_tests(test: Expression | None, other: Expression | None) -> Expression | None:
    """Return the formula that is 1 where two tests are; None asks for nothing.

    Examples
    --------
    >>> is_cat = ByLevel(name="answer", levels=("cat",), values=(1.0,))
    >>> no_dog = ByLevel(name="answer", levels=("dog",), values=(0.0,), otherwise=1.0)
    >>> both_tests(is_cat, no_dog) == is_cat
    True
    """
    if test is None or other is None:
        return other if test is None else test
    own, more = LevelSet.of(test), LevelSet.of(other)
    if own is not None and more is not None and own.name == more.name:
        return own.both(more).test
    return test * other
