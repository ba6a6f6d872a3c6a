"""Recognise errors that exhausted memory caused, and replace their texts."""

from __future__ import annotations

# Parts of the errors that loaders, engines and Python raise if memory is exhausted. Python raises the last
# two if C code could not even allocate the message.
_MEMORY_ERROR_TEXTS = (
    *("failed to map segment", "cannot allocate memory", "bad_alloc", "out of memory", "outofmemory"),
    *("null without setting an exception", "error return without exception set"),
)

# Replaces the texts of these errors, which do not name the cause.
OUT_OF_MEMORY_MESSAGE = (
    "there is not enough memory. Close other programs, read fewer columns, or use a larger machine."
)


def is_memory_error(error: BaseException) -> bool:
    """Return whether exhausted memory caused an error: the error itself, or one in its chain of causes."""
    visited: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in visited:
        text = f"{type(current).__name__}: {current}".lower()
        if isinstance(current, MemoryError) or any(part in text for part in _MEMORY_ERROR_TEXTS):
            return True
        visited.append(current)
        current = current.__cause__ or current.__context__
    return False
