"""Permissions of people for items: one table, which the server, the commands and imports read.

A person has roles, and an item has states. An activity is allowed if the table has it for one of the roles
and one of the states; everything else is rejected.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, get_args

from stratal.study.database import Connection, StudyError

# `operator`: the person who runs commands on the study's folder. `owner`: a person with the link of the page
# with the figures. `set-aside`: an annotator whose labels are excluded, and who has no other role until this
# is revoked. `stranger`: a person without a valid link, or who does not belong to the study.
StudyRole = Literal["annotator", "adjudicator", "set-aside", "owner", "operator", "stranger"]

# State of an item for a person. `none`: the activity does not concern an item. `not-given`: the item was
# never assigned to the person. `given`: it was assigned, and has no answer. `answered`: the person answered
# or skipped it. `disagreement`: answers differ, and there is no decision. `decided`: an adjudicator decided.
ItemState = Literal["none", "not-given", "given", "answered", "disagreement", "decided"]

# What a person may do. `state`: open the labelling page. `trail`: list one's earlier answers. `figures`: read
# the status and the report. `until`: change the half-width at which labelling ends. `item`, `media`,
# `disagreements`: read these. The others change or export the study.
Activity = Literal[
    "state", "item", "trail", "disagreements", "media", "submit", "skip", "undo", "flag", "unflag", "note",
    "adjudicate", "figures", "set-aside", "take-back", "add-annotator", "rubric", "extend", "until", "import",
    "export",
]  # fmt: skip

# Derived from the types, so that type checker and checks at run time have the same names.
STUDY_ROLES: tuple[StudyRole, ...] = get_args(StudyRole)
ITEM_STATES: tuple[ItemState, ...] = get_args(ItemState)
ACTIVITIES: tuple[Activity, ...] = get_args(Activity)

# The states of an item in which each role may do an activity.
PermissionRule = Mapping[StudyRole, frozenset[ItemState]]

_NO_ITEM_STATES: frozenset[ItemState] = frozenset({"none"})
_OWN_ITEM_STATES: frozenset[ItemState] = frozenset({"given", "answered"})
_DISPUTED_ITEM_STATES: frozenset[ItemState] = frozenset({"disagreement", "decided"})

# For activities that do not concern an item, and show no answers of others.
_MEMBERS_RULE: PermissionRule = {
    "annotator": _NO_ITEM_STATES,
    "adjudicator": _NO_ITEM_STATES,
    "set-aside": _NO_ITEM_STATES,
}
# People who are set aside keep their items: an answer that arrives late is saved, but not counted.
_OWN_ITEMS_RULE: PermissionRule = {"annotator": _OWN_ITEM_STATES, "set-aside": _OWN_ITEM_STATES}
# The person at the command line, who has access to the files and therefore to all answers.
OPERATOR: frozenset[StudyRole] = frozenset({"operator"})
_OPERATOR_RULE: PermissionRule = {"operator": _NO_ITEM_STATES}

PERMISSIONS: Mapping[Activity, PermissionRule] = MappingProxyType(
    {
        "state": _MEMBERS_RULE,
        "media": _MEMBERS_RULE,
        "trail": _MEMBERS_RULE,
        "item": _OWN_ITEMS_RULE,
        "submit": _OWN_ITEMS_RULE,
        "skip": _OWN_ITEMS_RULE,
        "flag": _OWN_ITEMS_RULE,
        "unflag": _OWN_ITEMS_RULE,
        "note": _OWN_ITEMS_RULE,
        "undo": {"annotator": _NO_ITEM_STATES, "set-aside": _NO_ITEM_STATES},
        "disagreements": {"adjudicator": _NO_ITEM_STATES},
        "adjudicate": {"adjudicator": _DISPUTED_ITEM_STATES},
        "figures": {"owner": _NO_ITEM_STATES, "operator": _NO_ITEM_STATES},
        "set-aside": _OPERATOR_RULE,
        "take-back": _OPERATOR_RULE,
        "add-annotator": _OPERATOR_RULE,
        "rubric": _OPERATOR_RULE,
        "extend": _OPERATOR_RULE,
        "until": _OPERATOR_RULE,
        "import": _OPERATOR_RULE,
        "export": _OPERATOR_RULE,
    }
)


def is_allowed(
    activity: Activity, roles: frozenset[StudyRole], states: frozenset[ItemState] = _NO_ITEM_STATES
) -> bool:
    """Return whether a person with these roles may do an activity on an item in these states."""
    rule = PERMISSIONS[activity]
    return any(rule.get(role, frozenset()) & states for role in roles)


def is_possible(activity: Activity, roles: frozenset[StudyRole]) -> bool:
    """Return whether a person with these roles may do an activity on an item in any state."""
    return any(role in PERMISSIONS[activity] for role in roles)


def roles_of(connection: Connection, name: str) -> frozenset[StudyRole]:
    """Return the roles of a person in a study."""
    row = connection.one("SELECT role, aside FROM annotator WHERE name = ?", name)
    if row is None:
        return frozenset({"stranger"})
    if row["aside"]:
        return frozenset({"set-aside"})
    appointed_names = json.loads(connection.setting("adjudicators") or "[]")
    roles: set[StudyRole] = set()
    if row["role"] == "annotator":
        roles.add("annotator")
    # Without appointed adjudicators, every annotator is one.
    if name in appointed_names or (not appointed_names and row["role"] == "annotator"):
        roles.add("adjudicator")
    return frozenset(roles)


def adjudicators_of(connection: Connection) -> tuple[str, ...]:
    """Return the people who may decide disagreements now, in the order of their appointment."""
    people = [row["name"] for row in connection.all("SELECT name FROM annotator ORDER BY name")]
    candidates = json.loads(connection.setting("adjudicators") or "[]") or people
    return tuple(name for name in candidates if "adjudicator" in roles_of(connection, name))


def states_of(connection: Connection, name: str, item: str | None) -> frozenset[ItemState]:
    """Return the states of an item, by its id, for a person."""
    if item is None:
        return _NO_ITEM_STATES
    row = connection.one(
        "SELECT apart, decision, EXISTS (SELECT 1 FROM given WHERE given.item = item.item AND annotator = ?) "
        "AS given, EXISTS (SELECT 1 FROM answer WHERE answer.item = item.item AND annotator = ?) AS answered "
        "FROM item WHERE id = ?",
        name, name, item,
    )  # fmt: skip
    if row is None:
        return frozenset({"not-given"})
    states: set[ItemState] = set()
    if row["answered"]:
        states.add("answered")
    elif row["given"]:
        states.add("given")
    else:
        states.add("not-given")
    if row["decision"] is not None:
        states.add("decided")
    elif row["apart"]:
        states.add("disagreement")
    return frozenset(states)


def require_allowed(
    connection: Connection,
    activity: Activity,
    name: str,
    item: str | None,
    roles: frozenset[StudyRole] | None = None,
) -> None:
    """Raise an error if `PERMISSIONS` does not allow an activity.

    Parameters
    ----------
    connection : Connection
    activity : str
    name : str
        The person to whom the item is assigned.
    item : str or None
        Id of the item, None if the activity does not concern an item.
    roles : frozenset of str, optional
        Roles of the person who acts; by default those of `name`.

    Raises
    ------
    StudyError
        Kind `missing` for an item that was never assigned to the person, otherwise kind `refused`.
    """
    if roles is None:
        roles = roles_of(connection, name)
    states = states_of(connection, name, item)
    if is_allowed(activity, roles, states):
        return
    if not is_possible(activity, roles):
        raise _role_error(connection, activity, name, roles)
    if activity == "adjudicate":
        raise _no_disagreement_error(connection, str(item))
    problem = f"item {str(item)[:60]!r} was not assigned to {name!r}"
    raise StudyError(problem, kind="missing", action="Reload the page.")


def _role_error(
    connection: Connection, activity: Activity, name: str, roles: frozenset[StudyRole]
) -> StudyError:
    """Return the error of a person whose roles do not allow an activity in any state."""
    if activity == "adjudicate":
        problem = f"{name!r} may not decide disagreements"
        if "set-aside" in roles:
            problem = f"{name!r} may not decide disagreements while set aside"
        return StudyError(problem, kind="refused", allowed=", ".join(adjudicators_of(connection)) or "nobody")
    allowed = ", ".join(PERMISSIONS[activity])
    return StudyError(f"{name!r} may not do this ({activity})", kind="refused", allowed=allowed)


def _no_disagreement_error(connection: Connection, item: str) -> StudyError:
    """Return the error of a decision on an item that needs none, or that does not exist."""
    if connection.one("SELECT 1 FROM item WHERE id = ?", item) is None:
        return StudyError(f"there is no item {item[:60]!r}", kind="missing", action="Reload the page.")
    return StudyError(
        f"item {item[:60]!r} has no disagreement to decide",
        kind="refused",
        allowed="items on which annotators differ, and items that already have a decision",
    )
