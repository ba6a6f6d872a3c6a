"""One secret link for each annotator."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

from stratal.study.journal import PAGE_SECRET
from stratal.study.study import Study


def token_of(secret: str, annotator: str) -> str:
    """Return an annotator's token: 43 characters that cannot be guessed without the study's secret.

    Examples
    --------
    >>> len(token_of("secret", "ann")), token_of("secret", "ann") == token_of("secret", "bob")
    (43, False)
    """
    digest = hmac.new(secret.encode(), f"annotator:{annotator}".encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def people(study: Study) -> tuple[str, ...]:
    """Return everyone who has a link: annotators and adjudicators.

    Examples
    --------
    >>> people.__name__
    'people'
    """
    return tuple(dict.fromkeys((*study.annotators, *study.adjudicators)))


def new_links(study: Study) -> None:
    """Make all earlier links of a study invalid.

    Examples
    --------
    >>> new_links.__name__
    'new_links'
    """
    study.keep(PAGE_SECRET, secrets.token_hex(32))


def tokens(study: Study) -> dict[str, str]:
    """Return annotator → token; the same whenever it is asked, until `new_links`.

    Examples
    --------
    >>> tokens.__name__
    'tokens'
    """
    if not study.setting(PAGE_SECRET):
        new_links(study)
    secret = study.setting(PAGE_SECRET) or ""
    return {name: token_of(secret, name) for name in people(study)}


class Doorman:
    """Knows annotators by their tokens, also those who came after the server started.

    Examples
    --------
    >>> Doorman.__name__
    'Doorman'
    """

    def __init__(self, study: Study) -> None:
        self._study = study
        self._known: dict[bytes, str] = {}

    def annotator(self, token: str) -> str | None:
        """Return whose token this is, None for nobody's.

        Only digests are compared, so that the time taken says nothing of the token.
        """
        digest = _digest(token)
        if digest not in self._known:
            self._known = {_digest(own): name for name, own in tokens(self._study).items()}
        return self._known.get(digest)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()
