"""The window joins of a run in layers: one more join reads its own windows, not those of all.

    layers    [ 5,000 joins │ 40 joins │ 1 join ]      each a JoinStage with its own state

As snapshots have layers (snapshot.py), and for the same reason. What a join has found does not
depend on its layer, so layers come and go without a trace: a layer that has grown to an eighth of
the one before it is made anew together with it, and one of which half was dropped is made anew
without them. The price is that a window that two layers look at is held twice until then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from headgate.pipeline.snapshot import SHARE
from headgate.plan.algebra import Plan
from headgate.windows.arrivals import Arrival, Output
from headgate.windows.stage import JoinStage

Plans = Mapping[str, Plan]


@dataclass(frozen=True, slots=True)
class _Layer:
    stage: JoinStage
    plans: Plans
    """Those that the stage was made for and that are still wanted."""


@dataclass(slots=True)
class JoinLayers:
    """For one thread. `make` gives a stage for some joins the state of this moment."""

    make: Callable[[Plans], JoinStage]
    _plans: Plans = field(default_factory=dict)
    _layers: list[_Layer] = field(default_factory=list)

    def follow(self, plans: Plans) -> None:
        """From now on these are the joins: known ones keep their state."""
        if plans == self._plans:
            return
        kept = [_kept(layer, plans) for layer in self._layers]
        known = {name for layer in kept for name in layer.plans}
        fresh = {name: plan for name, plan in plans.items() if name not in known}
        groups: list[Group] = [(layer.plans, layer) for layer in kept]
        found = _merged([group for group in (*groups, (fresh, None)) if group[0]])
        self._layers = [
            _Layer(self.make(own), own) if layer is None else layer for own, layer in found
        ]
        self._plans = plans

    @property
    def sources(self) -> frozenset[str]:
        return frozenset(source for each in self._layers for source in each.stage.sources)

    @property
    def unsupported(self) -> dict[str, str]:
        return {
            name: reason
            for each in self._layers
            for name, reason in each.stage.unsupported.items()
            if name in each.plans
        }

    def push(self, arrivals: Sequence[Arrival]) -> None:
        for each in self._layers:
            each.stage.push(arrivals)

    def advance(self, safe: datetime) -> list[Output]:
        """In the order of the stages: by moment of decision, then time, source and id."""
        outputs = [output for each in self._layers for output in _wanted(each, safe)]
        if len(self._layers) > 1:
            outputs.sort(key=lambda o: (o.decided_at, o.item.time, o.item.source, o.item.id))
        return outputs

    def next_decision(self) -> datetime | None:
        moments = [due for each in self._layers if (due := each.stage.next_decision()) is not None]
        return min(moments, default=None)


Group = tuple[Plans, _Layer | None]
"""Joins, and the layer that has them already."""


def _kept(layer: _Layer, plans: Plans) -> _Layer:
    same = {name: plan for name, plan in layer.plans.items() if plans.get(name) == plan}
    return _Layer(layer.stage, same)


def _merged(groups: Sequence[Group]) -> list[Group]:
    """Without layers that have become small beside what they hold, or beside their neighbours."""
    layers: list[Group] = []
    for plans, layer in groups:
        is_half_dead = layer is not None and 2 * len(plans) < len(layer.stage.plans)
        layers.append((plans, None if is_half_dead else layer))
        while len(layers) > 1 and len(layers[-1][0]) * SHARE >= len(layers[-2][0]):
            (later, _), (earlier, _) = layers.pop(), layers.pop()
            layers.append(({**earlier, **later}, None))
    return layers


def _wanted(layer: _Layer, safe: datetime) -> list[Output]:
    """What a layer has found, for the feeds that are still wanted."""
    wanted: list[Output] = []
    for each in layer.stage.advance(safe):
        feeds = tuple(feed for feed in each.feeds if feed in layer.plans)
        if feeds:
            wanted.append(Output(feeds, each.item, each.decided_at))
    return wanted
