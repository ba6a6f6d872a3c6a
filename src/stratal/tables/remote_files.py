"""Files on the web and in S3, read with fsspec only if the user allows it."""

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

# An address of a remote file; `Path` removes one of the two slashes after the scheme.
_ADDRESS = re.compile(r"(https?|s3):/+(.+)")

# Other addresses, such as gs:// and hdfs://, which only Spark reads.
_OTHER_ADDRESS = re.compile(r"(?!file:)[a-z][a-z0-9+.-]+://")

# Time of the last change of files on the web, whose true time is unknown. Any constant is sufficient.
_UNKNOWN_TIME = datetime(2000, 1, 1, tzinfo=UTC)


def address_of(path: str | os.PathLike[str], *, remote: bool) -> str | None:
    """Return the address if a path is that of a remote file, None for a local file.

    Raises an `InputError` for an address if `remote` is false.
    """
    text = os.fspath(path)
    match = _ADDRESS.fullmatch(text)
    if match is None:
        if _OTHER_ADDRESS.match(text):
            raise InputError(
                f"{text}: only Spark reads addresses of this kind",
                allowed="https://… or s3://… with --remote, or engine='spark' (--engine spark)",
            )
        return None
    address = f"{match[1]}://{match[2]}"
    if not remote:
        raise InputError(
            f"{address} is not on this machine, and remote files are read only on request",
            action="Add remote=True (--remote), or download the file first.",
        )
    return address


def register_address(connection: Any, address: str) -> None:
    """Register the file system of an address with a DuckDB connection, which then reads parts of the file."""
    with remote_filesystem(address) as filesystem:
        # Raises the error for a missing file here, in translated form.
        filesystem.info(address)
        # DuckDB requests the time of the last change, which fsspec does not know for the web.
        if address.startswith("http"):
            filesystem.modified = lambda path: _UNKNOWN_TIME
        connection.register_filesystem(filesystem)


def fetch_copy(address: str) -> Path:
    """Download a remote file and return the copy, which is deleted when the process ends."""
    copy = private_file("-" + (address.split("?")[0].rsplit("/", 1)[-1] or "file"))
    with remote_filesystem(address) as filesystem:
        filesystem.get_file(address, str(copy))
    return copy


@contextmanager
def remote_filesystem(address: str) -> Iterator[Any]:
    """Yield the fsspec file system of an address, and translate its errors into an `InputError`.

    Raises a `MissingExtraError` if fsspec, or the package that it requires for this kind of address, is not
    installed.
    """
    try:
        import fsspec

        yield fsspec.filesystem(address.split(":")[0], skip_instance_cache=True)
    except InputError:
        raise
    except ImportError:
        raise MissingExtraError("fsspec for remote files", extra="remote") from None
    # fsspec passes on the exceptions of its clients, which have no common class.
    except Exception as error:
        if str(error):
            reason = str(error).splitlines()[0]
        else:
            reason = type(error).__name__
        raise InputError(
            f"{address} cannot be fetched",
            given=reason,
            action="Check the address and your credentials, or download the file first.",
        ) from error
