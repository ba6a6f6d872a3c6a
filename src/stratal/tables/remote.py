"""Files on the web and in S3, fetched only when asked for, through fsspec."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from stratal.errors import InputError, MissingExtraError
from stratal.tables.spilling import private_file

_ADDRESS = re.compile(r"(https?|s3):/+(.+)")

_OTHER = re.compile(r"(?!file:)[a-z][a-z0-9+.-]+://")

_UNKNOWN_TIME = datetime(2000, 1, 1, tzinfo=UTC)


def address_of(path: str | os.PathLike[str], *, remote: bool) -> str | None:
    """Return the address that a path is, None where it is a file of this machine.

    Raises
    ------
    InputError
        For an address, unless `remote` files were asked for.

    Examples
    --------
    >>> address_of(Path("s3://bucket/p.parquet"), remote=True), address_of("p.csv", remote=False)
    ('s3://bucket/p.parquet', None)
    """
    text = os.fspath(path)
    found = _ADDRESS.fullmatch(text)
    if found is None:
        if _OTHER.match(text):
            raise InputError(
                f"{text}: only Spark reads addresses of this kind",
                allowed="https://… and s3://… with --remote, or engine='spark' (--engine spark)",
            )
        return None
    address = f"{found[1]}://{found[2]}"
    if not remote:
        raise InputError(
            f"{address} is not on this machine, and remote files are read only on request",
            action="Add remote=True (--remote), or download it first.",
        )
    return address


def register(connection: Any, address: str) -> None:
    """Let a DuckDB connection read an address through fsspec, by the parts of the file that it needs."""
    with reachable(address) as system:
        system.info(address)
        if address.startswith(
            "http"
        ):  # DuckDB asks when a file was changed, which fsspec cannot tell of the web
            system.modified = lambda path: _UNKNOWN_TIME
        connection.register_filesystem(system)


def fetched(address: str) -> Path:
    """Return a copy of a remote file, which is deleted when the process ends."""
    copy = private_file("-" + (address.split("?")[0].rsplit("/", 1)[-1] or "file"))
    with reachable(address) as system:
        system.get_file(address, str(copy))
    return copy


@contextmanager
def reachable(address: str) -> Iterator[Any]:
    """Yield fsspec's file system for an address; what fetching raises becomes one `InputError` that names it.

    Raises
    ------
    MissingExtraError
        If fsspec, or what it needs for this kind of address, is not installed.

    Examples
    --------
    >>> with reachable("https://example.org/p.csv"):
    ...     raise OSError("no route to host")
    Traceback (most recent call last):
    stratal.errors.InputError: https://example.org/p.csv: cannot be fetched (given: no route to host)...
    """
    try:
        import fsspec

        yield fsspec.filesystem(address.split(":")[0], skip_instance_cache=True)
    except InputError:
        raise
    except ImportError:
        raise MissingExtraError("fsspec for remote files", extra="remote") from None
    except Exception as error:  # fsspec's file systems raise what their clients raise
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"{address}: cannot be fetched",
            given=reason,
            action="Check the address and your credentials, or download it first.",
        ) from error
