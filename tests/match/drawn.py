"""Many examples of a strategy at once, as a list."""

from __future__ import annotations

from typing import TypeVar

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

Example = TypeVar("Example")


def drawn(strategy: st.SearchStrategy[Example], count: int) -> list[Example]:
    """About so many examples; always the same ones, so that what depends on them is repeatable."""
    examples: list[Example] = []

    @given(strategy)
    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def collect(example: Example) -> None:
        examples.append(example)

    collect()
    return examples
