"""The `stratal` command: one file per subcommand, which parses, calls the library and prints."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType


def main() -> None:
    """Run the command line. It is imported here, so that Ctrl-C during the imports prints no traceback."""
    import atexit
    import gc

    from stratal.cli import interruption

    # The imports create about 100,000 objects. With Python's default of 700, they trigger many collections.
    gc.set_threshold(200_000)
    # The collection at the exit takes a sixth of the time of a command.
    atexit.register(gc.freeze)
    interruption.handle_signals()
    defer_unused_imports()
    try:
        from stratal.cli.application import main as run
    except BaseException:
        # The imports are slow, so a signal often arrives here.
        if not interruption.is_interrupted():
            raise
        interruption.exit_at_once()
    run()


# Executes a module with its original loader.
ExecModule = Callable[[ModuleType], None]


class _NoPandas:
    """A finder that hides pandas while it is on `sys.meta_path`."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> None:
        if name == "pandas":
            raise ImportError(name)


class _LoaderOverride:
    """A finder that replaces the loader of one module, at its first import, by `load`."""

    def __init__(self, name: str, load: Callable[[ModuleType, ExecModule], None]) -> None:
        self.name = name
        self.load = load

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: object = None
    ) -> ModuleSpec | None:
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            exec_module = spec.loader.exec_module
            spec.loader.exec_module = lambda module: self.load(module, exec_module)  # type: ignore[method-assign]
        return spec


def _load_without_pandas(module: ModuleType, exec_module: ExecModule) -> None:
    """Load PyArrow without pandas, which it imports with its first array (0.5 s)."""
    exec_module(module)
    if "pandas" not in sys.modules:
        finder = _NoPandas()
        sys.meta_path.insert(0, finder)
        try:
            module.array([])
        finally:
            sys.meta_path.remove(finder)


def _load_compiled_functions(module: ModuleType, exec_module: ExecModule) -> None:
    """Load the compiled functions of `scipy.special`; access to another name loads the complete module.

    The other parts prepare documentation and the support of other array libraries. They take 0.15 s, three
    times as long as the functions.
    """
    functions = import_module("scipy.special._ufuncs")

    def load_attribute(name: str) -> object:
        vars(module).pop("__getattr__", None)
        exec_module(module)
        return getattr(module, name)

    compiled = {name: getattr(functions, name) for name in functions.__all__}
    vars(module).update(compiled, __getattr__=load_attribute)


def defer_unused_imports() -> None:
    """Do not import the slowest parts of PyArrow and SciPy that commands do not use."""
    if "pyarrow" not in sys.modules:
        sys.meta_path.insert(0, _LoaderOverride("pyarrow", _load_without_pandas))
    if "scipy.special" not in sys.modules and not os.environ.get("SCIPY_ARRAY_API"):
        sys.meta_path.insert(0, _LoaderOverride("scipy.special", _load_compiled_functions))
