"""Which errors mean that memory ran out, whatever library noticed it first."""

from __future__ import annotations

WORDS = (
    *("failed to map segment", "cannot allocate memory", "bad_alloc", "out of memory", "outofmemory"),
    *("null without setting an exception", "error return without exception set"),
)
"""What loaders, engines and Python itself say of it; the last two are calls that could not even say so."""

MESSAGE = "there is not enough memory. Close other programs, read fewer columns, or use a larger machine."


def out_of_memory(error: BaseException) -> bool:
    """Return whether an error, or one that led to it, is that memory ran out.

    Examples
    --------
    >>> out_of_memory(MemoryError()), out_of_memory(ImportError("failed to map segment from shared object"))
    (True, True)
    >>> out_of_memory(ValueError("a mistake"))
    False
    """
    seen: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in seen:
        words = f"{type(link).__name__}: {link}".lower()
        if isinstance(link, MemoryError) or any(word in words for word in WORDS):
            return True
        seen.append(link)
        link = link.__cause__ or link.__context__
    return False
