"""A configuration at work in a wide area network, simulated event by event ([Delta §5.5]).

    source ══► link ──delay──► site: view ready ══► link ──delay──► site: join ══► …
               queue                                 queue                 queue

Each site has one processor and one outgoing link, which serve in the order of asking: a view that
feeds thousands, or many views at one site, make each other wait. This is what the latency model of
§2.2 leaves out, and why B_out has a best value between too low (deep) and too high (overloaded).

    observed latency of v for d      from the publication of d until v has all of it
    document delivery time of d      the same for the slowest view

As in the paper, the time that the source takes to extract its views' results is not counted, and
every document has something for every view. Law: without queues, a view that reads one other is
served after exactly the λ that the model says; never later than λ if it reads several.

Cost: about four events for each view and document, half a microsecond each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headgate.model.errors import InvalidValue
from headgate.network.configuration import SOURCE, Configuration
from headgate.network.configuration_kernels import readers_of_all
from headgate.network.configuration_problem import Floats
from headgate.network.physical_plan_kernels import AT_VIEW
from headgate.network.physical_plans import PricedPlans, area_arrays
from headgate.network.wide_area import WideArea
from headgate.simulate.wan_kernels import Deployed, simulate


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """What was measured: latency_s[view, document]."""

    latency_s: Floats

    @property
    def delivery_s(self) -> Floats:
        """The document delivery time of each document."""
        found: Floats = self.latency_s.max(axis=0)
        return found


def run_configuration(
    configuration: Configuration,
    plans: PricedPlans,
    area: WideArea,
    *,
    published_s: Floats,
    scales: Floats,
) -> Observed:
    """Publish documents at these times; `scales` are their sizes as shares of the usual one."""
    if len(published_s) != len(scales):
        raise InvalidValue(f"{len(published_s)} times for {len(scales)} documents")
    latency_s = np.zeros((len(configuration.choice), len(published_s)))
    deployed = deploy(configuration, plans, area)
    simulate(area_arrays(area), area.source_site, deployed, published_s, scales, latency_s)
    return Observed(latency_s)


def deploy(configuration: Configuration, plans: PricedPlans, area: WideArea) -> Deployed:
    rewritings, choice = configuration.problem.rewritings, configuration.choice
    start, readers = readers_of_all(rewritings.member_start, rewritings.members, choice)
    taken = np.flatnonzero(choice != SOURCE)
    chosen = choice[taken]
    first = rewritings.member_start[chosen]
    inputs = np.zeros(len(choice), np.int64)
    inputs[taken] = rewritings.member_start[chosen + 1] - first
    total = np.concatenate([[0.0], np.cumsum(area.view_bytes[rewritings.members])])
    input_bytes = np.zeros(len(choice))
    input_bytes[taken] = total[first + inputs[taken]] - total[first]
    join_site = area.view_site.copy()
    where = plans.join_at[chosen]
    away = where != AT_VIEW
    members = rewritings.members[first[away] + where[away]]
    join_site[taken[away]] = area.view_site[members]
    return Deployed(start, readers, inputs, input_bytes, join_site)
