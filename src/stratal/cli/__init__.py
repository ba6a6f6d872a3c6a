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
    """Run the command line, imported here so that Ctrl-C during the imports ends quietly too."""
    import atexit
    import gc

    from stratal.cli import stopping

    gc.set_threshold(200_000)  # a start makes 100,000 objects, and by Python's 700 is ever looking for cycles
    atexit.register(gc.freeze)  # or Python looks for some as it ends: a sixth of a command's time
    stopping.listen()
    needed_alone()
    try:
        from stratal.cli.application import main as run
    except BaseException:
        # Imports are slow, so that an interruption often arrives here: then without a traceback.
        if not stopping.requested():
            raise
        stopping.leave()
    run()


# What a command does not need, it does not load: of PyArrow and of SciPy these parts cost the most time.


class _NoPandas:
    """Hides pandas while it is on `sys.meta_path`."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> None:
        if name == "pandas":
            raise ImportError(name)


class _Loading:
    """Hands a module's own loader to `load` when the module is imported; once."""

    def __init__(self, name: str, load: Callable[[ModuleType, Callable[[ModuleType], None]], None]) -> None:
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
            usual = spec.loader.exec_module
            spec.loader.exec_module = lambda module: self.load(module, usual)  # type: ignore[method-assign]
        return spec


def _without_pandas(module: ModuleType, usual: Callable[[ModuleType], None]) -> None:
    """Load PyArrow, which at its first array looks for pandas: half a second."""
    usual(module)
    if "pandas" not in sys.modules:
        hidden = _NoPandas()
        sys.meta_path.insert(0, hidden)
        try:
            module.array([])
        finally:
            sys.meta_path.remove(hidden)


def _compiled_alone(module: ModuleType, usual: Callable[[ModuleType], None]) -> None:
    """Load the compiled functions of `scipy.special`; whoever asks for another name gets the module whole.

    The rest prepares documentation and other array libraries: 0.15 s, three times what the functions take.
    """
    functions = import_module("scipy.special._ufuncs")

    def others(name: str) -> object:
        vars(module).pop("__getattr__", None)
        usual(module)
        return getattr(module, name)

    vars(module).update({name: getattr(functions, name) for name in functions.__all__}, __getattr__=others)


def needed_alone() -> None:
    """Let commands, which hand over no dataframes and other libraries' arrays, load what they need."""
    if "pyarrow" not in sys.modules:
        sys.meta_path.insert(0, _Loading("pyarrow", _without_pandas))
    if "scipy.special" not in sys.modules and not os.environ.get("SCIPY_ARRAY_API"):
        sys.meta_path.insert(0, _Loading("scipy.special", _compiled_alone))
