"""Which errors mean that memory ran out, whatever library noticed it first."""

from __future__ import annotations

from stratal.errors import InputError

LEAST_ADDRESSES = 1_500_000 * 1024
"""Bytes of address space that a command needs. Numerical libraries reserve far more than they use, and end
the process themselves where they cannot: on two cores an estimate ends so at 700,000 kB, a plan at 1,000,000,
and both run at 1,500,000."""

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


def refuse_few_addresses() -> None:
    """Refuse to run under a limit (`ulimit -v`) at which libraries would end the process while they load.

    Raises
    ------
    InputError
        With the limit, and the one that is enough.

    Examples
    --------
    >>> refuse_few_addresses()
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < LEAST_ADDRESSES:
        raise InputError(
            "there is not enough address space to load what this command needs",
            given=f"ulimit -v {limit // 1024}",
            allowed=f"at least {LEAST_ADDRESSES // 1024}",
            action="Raise the limit: ulimit -v unlimited.",
        )
