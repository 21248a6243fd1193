"""Content-based publish/subscribe for many standing queries that share their work.

    import headgate as hg

    hg.Matcher    named filters, matched together: items, Arrow, pandas and Polars frames
    hg.spark      the same on Spark DataFrames, batch and streaming
    hg.open       a catalog and its runs: statements, subscriptions, stored items, running

Names are loaded when they are first used: `import headgate` loads neither Spark nor Numba.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headgate.api import spark as spark
    from headgate.api.explanation import Explanation as Explanation
    from headgate.api.headgate import Headgate as Headgate
    from headgate.api.headgate import open as open
    from headgate.api.matcher import Matcher as Matcher
    from headgate.model.errors import HeadgateError as HeadgateError
    from headgate.model.errors import LanguageError as LanguageError

__version__ = "0.1.0"

_EXPORTED = {
    "Explanation": "headgate.api.explanation",
    "Headgate": "headgate.api.headgate",
    "HeadgateError": "headgate.model.errors",
    "LanguageError": "headgate.model.errors",
    "Matcher": "headgate.api.matcher",
    "open": "headgate.api.headgate",
    "spark": "",
}
"""Each name with the module that has it; a name without one is a module of the room api."""

__all__ = [
    "Explanation",
    "Headgate",
    "HeadgateError",
    "LanguageError",
    "Matcher",
    "__version__",
    "open",
    "spark",
]


def __getattr__(name: str) -> object:
    if name not in _EXPORTED:
        raise AttributeError(f"module 'headgate' has no attribute '{name}'")
    home = _EXPORTED[name]
    value: object = (
        getattr(importlib.import_module(home), name)
        if home
        else importlib.import_module(f"headgate.api.{name}")
    )
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
