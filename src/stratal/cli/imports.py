"""PyArrow without pandas: at its first array it looks for pandas, which takes half a second to load."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType


class _NoPandas:
    """Hides pandas while it is on `sys.meta_path`."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> None:
        if name == "pandas":
            raise ImportError(name)


class _PyArrowAlone:
    """Lets PyArrow make its first array without pandas, as soon as it is imported."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: object = None
    ) -> ModuleSpec | None:
        if name != "pyarrow":
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None and "pandas" not in sys.modules:
            load = spec.loader.exec_module

            def load_alone(module: ModuleType) -> None:
                load(module)
                hidden = _NoPandas()
                sys.meta_path.insert(0, hidden)
                try:
                    module.array([])
                finally:
                    sys.meta_path.remove(hidden)

            spec.loader.exec_module = load_alone  # type: ignore[method-assign]
        return spec


def pyarrow_alone() -> None:
    """Let commands, which hand PyArrow no dataframes, use it without pandas until it is imported."""
    if "pyarrow" not in sys.modules:
        sys.meta_path.insert(0, _PyArrowAlone())
