"""What `register operator` says about an operator, and the limits it runs under, as plain values.

    register operator locIn(area text) cost 40 selectivity 0.1 from 'city.operators:loc_in';
                      name  parameters      cost            selectivity    target

Both go to other processes as JSON: to executors, and from there to the child that calls.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from headgate.model.values import Type


@dataclass(frozen=True, slots=True)
class Declaration:
    """The operator as registered. The cost is relative to that of others; None is to be learned."""

    name: str
    target: str
    parameters: tuple[tuple[str, Type], ...] = ()
    cost: float | None = None
    selectivity: float | None = None

    def to_json(self) -> dict[str, object]:
        return asdict(self)

    @staticmethod
    def from_json(found: dict[str, object]) -> Declaration:
        parameters, cost, selectivity = (
            found[each] for each in ("parameters", "cost", "selectivity")
        )
        assert isinstance(parameters, list | tuple)
        assert cost is None or isinstance(cost, int | float)
        assert selectivity is None or isinstance(selectivity, int | float)
        return Declaration(
            str(found["name"]),
            str(found["target"]),
            tuple((str(name), Type(type_)) for name, type_ in parameters),
            cost,
            selectivity,
        )


@dataclass(frozen=True, slots=True)
class OperatorLimits:
    """What one operator may take before its answer is given up."""

    item_s: float = 1.0
    """The time for one item."""
    batch_s: float = 10.0
    """The time for one call of a batch form, however many items it is given."""
    load_s: float = 60.0
    """The time for importing one operator's module."""
    memory_bytes: int = 1 << 30
    """What all operators together may take, beyond what the process takes by itself."""
    bindings_max: int = 1_000
    """The number of solutions for one item."""
    split_s: float = 30.0
    """How long a batch form that fails is asked again for parts of the batch, to find the items
    that it fails on."""

    def to_json(self) -> dict[str, float | int]:
        return asdict(self)
