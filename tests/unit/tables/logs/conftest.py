"""The error that a damaged log of an evaluation tool ends in."""

from __future__ import annotations

from typing import Any

import pytest

from stratal.errors import InputError
from stratal.population import Population


@pytest.fixture
def refusal(written):
    """Return the one error that a changed document ends in; a list is written as JSON Lines."""

    def read(document: Any) -> str:
        with pytest.raises(InputError) as caught:
            Population.read(written(document, lines=isinstance(document, list)))
        return str(caught.value)

    return read
