"""A configuration in a wide area network, simulated event by event ([Delta §5.5]).

    source ══► link ──delay──► site: view ready ══► link ──delay──► site: join ══► …
               queue                                 queue                 queue

Each site has one processor and one outgoing link, which serve requests in order: a view that feeds
thousands, or many views at one site, make each other wait. The latency model of §2.2 has no queues;
they are why B_out has a best value between too low (deep networks) and too high (overload).

    observed latency of v for d      from the publication of d until v has all of it
    document delivery time of d      the same for the slowest view

As in the paper, the time for extracting the source's views is not counted, and every document has
results for every view. Three kinds of events, processed in the order of time:

    READY(v, d)      view v has all of document d: it is sent to the sites of its readers' joins
    ARRIVED(v, d)    one input of v's join has arrived; the last one starts the join
    JOINED(v, d)     v's result is computed, and sent to v's site

Invariant: without queues, a view that reads one other is served after exactly the λ of the model,
and never later than λ if it reads several. Events of equal time keep the order of their creation.

Cost: about four events for each view and document, half a microsecond each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numba as nb
import numpy as np

from headgate.model.errors import InvalidValue
from headgate.network.configuration import SOURCE, Configuration, readers_of_all
from headgate.network.configuration_problem import Floats, Ints, Longs
from headgate.network.physical_plans import AT_VIEW, PricedPlans, area_arrays
from headgate.network.wide_area import PROCESSING, READING, RECEIVING, SENDING, WideArea


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """The measured latencies: latency_s[view, document]."""

    latency_s: Floats

    @property
    def delivery_s(self) -> Floats:
        """The document delivery time of each document."""
        slowest_s: Floats = self.latency_s.max(axis=0)
        return slowest_s


def run_configuration(
    configuration: Configuration,
    plans: PricedPlans,
    area: WideArea,
    *,
    published_s: Floats,
    scales: Floats,
) -> Observed:
    """Publish documents at these times; `scales` are their sizes relative to `document_bytes`."""
    if len(published_s) != len(scales):
        raise InvalidValue(
            f"published_s has {len(published_s)} times, scales has {len(scales)} documents"
        )
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


# Kernels.

READY, ARRIVED, JOINED = range(3)


class Deployed(NamedTuple):
    """A configuration in its network: the readers of each view, and where joins run."""

    reader_start: Longs  # [view + 1]
    readers: Longs
    inputs: Longs  # [view]: how many views it reads, 0 from the source
    input_bytes: Floats  # [view]: of all of them
    join_site: Ints  # [view]


@nb.njit(nogil=True, cache=True)
def push(heap, size, time, number, event):  # type: ignore[no-untyped-def]
    """Push an event into a binary heap ordered by (time, number); returns the new size."""
    times, numbers, events = heap
    position = size
    while position > 0:
        parent = (position - 1) >> 1
        if times[parent] < time or (times[parent] == time and numbers[parent] < number):
            break
        times[position], numbers[position], events[position] = (
            times[parent],
            numbers[parent],
            events[parent],
        )
        position = parent
    times[position], numbers[position], events[position] = time, number, event
    return size + 1


@nb.njit(nogil=True, cache=True)
def pop(heap, size):  # type: ignore[no-untyped-def]
    """Remove the first event: (its time, the event, the new size)."""
    times, numbers, events = heap
    first_time, first_event = times[0], events[0]
    size -= 1
    time, number, event = times[size], numbers[size], events[size]
    position = 0
    while True:
        child = 2 * position + 1
        if child >= size:
            break
        right = child + 1
        if right < size and (
            times[right] < times[child]
            or (times[right] == times[child] and numbers[right] < numbers[child])
        ):
            child = right
        if time < times[child] or (time == times[child] and number < numbers[child]):
            break
        times[position], numbers[position], events[position] = (
            times[child],
            numbers[child],
            events[child],
        )
        position = child
    times[position], numbers[position], events[position] = time, number, event
    return first_time, first_event, size


@nb.njit(nogil=True, cache=True)
def grown(heap, size):  # type: ignore[no-untyped-def]
    """The heap, or a larger copy if it is full."""
    times, numbers, events = heap
    if size < times.shape[0]:
        return heap
    room = np.empty(size)
    counts = np.empty(size, np.int64)
    return (
        np.concatenate((times, room)),
        np.concatenate((numbers, counts)),
        np.concatenate((events, counts)),
    )


@nb.njit(nogil=True, cache=True)
def sent(area, link_free, now, way):  # type: ignore[no-untyped-def]
    """The time when data arrives that is ready to be sent now. way is (start, end, bytes)."""
    start, end, size = way
    if start == end:
        return now
    begin = max(now, link_free[start])
    link_free[start] = begin + area.start_s + size * area.seconds_per_byte[start, SENDING]
    delay = area.delay_s[area.region[start], area.region[end]]
    return link_free[start] + delay + size * area.seconds_per_byte[end, RECEIVING]


@nb.njit(nogil=True, cache=True)
def simulate(area, source, deployed, published_s, scales, latency):  # type: ignore[no-untyped-def]
    """Fill latency, float64 [view, document].

    area       physical_plans.AreaArrays
    source     the site of the source
    deployed   Deployed
    scales     float64 [document]: relative sizes of documents
    """
    views, documents = latency.shape
    sites = area.region.shape[0]
    link_free, busy_until = np.zeros(sites), np.zeros(sites)
    waits = np.empty((views, documents), np.int32)
    heap = (np.empty(1024), np.empty(1024, np.int64), np.empty(1024, np.int64))
    size, event_count = 0, np.int64(0)
    for document in range(documents):
        waits[:, document] = deployed.inputs
        for view in range(views):
            if deployed.inputs[view] == 0:
                # The source sends at publication, in the order of the views.
                way = (source, area.view_site[view], area.view_bytes[view] * scales[document])
                begin = sent(area, link_free, published_s[document], way)
                if way[0] == way[1]:
                    begin += area.start_s
                heap = grown(heap, size)
                event = (np.int64(view) * documents + document) * 3 + READY
                size, event_count = push(heap, size, begin, event_count, event), event_count + 1
    while size > 0:
        now, event, size = pop(heap, size)
        kind, pair = event % 3, event // 3
        view, document = pair // documents, pair % documents
        scale, place = scales[document], deployed.join_site[view]
        if kind == READY:
            latency[view, document] = now - published_s[document]
            site, size_bytes = area.view_site[view], area.view_bytes[view] * scale
            read = now + size_bytes * area.seconds_per_byte[site, READING]
            for position in range(deployed.reader_start[view], deployed.reader_start[view + 1]):
                reader = deployed.readers[position]
                arrives = sent(
                    area, link_free, read, (site, deployed.join_site[reader], size_bytes)
                )
                heap = grown(heap, size)
                event = (np.int64(reader) * documents + document) * 3 + ARRIVED
                size, event_count = push(heap, size, arrives, event_count, event), event_count + 1
            continue
        if kind == ARRIVED:
            waits[view, document] -= 1
            if waits[view, document] > 0:
                continue
            work = deployed.input_bytes[view] * scale * area.seconds_per_byte[place, PROCESSING]
            busy_until[place] = max(now, busy_until[place]) + area.start_s + work
            then, event = busy_until[place], pair * 3 + JOINED
        else:
            way = (place, area.view_site[view], area.view_bytes[view] * scale)
            then, event = sent(area, link_free, now, way), pair * 3 + READY
        heap = grown(heap, size)
        size, event_count = push(heap, size, then, event_count, event), event_count + 1
