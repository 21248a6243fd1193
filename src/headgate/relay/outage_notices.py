"""Which views wait for a site that cannot be reached, sent to all sites below it.

    Paris ✕ ──► Asia at Rome ──► SalesInAsia at Oslo        Oslo gets: SalesInAsia waits for Paris

A relay that cannot reach a supplier sends a notice for the affected views to their readers, which
forward it. Notices are about views, which have no cycle, so a notice cannot circulate between two
sites that feed each other. No sockets, files or clocks are used here, as in state.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headgate.model.errors import RelayError
from headgate.relay.deployment import SitePart

Sites = frozenset[str]
NOBODY: Sites = frozenset()


class RelayNews:
    def __init__(self, part: SitePart) -> None:
        self._views = part.views
        self._gone: set[str] = set()
        self._told: dict[int, Sites] = {}
        self._waits: dict[int, Sites] = {}
        self._to_tell: dict[str, dict[int, None]] = {site: {} for site in part.readers}

    def lost(self, supplier: str) -> None:
        if supplier not in self._gone:
            self._gone.add(supplier)
            self._spread(self._from(supplier))

    def found(self, supplier: str) -> None:
        """It is connected, and will say what it waits for itself."""
        self._gone.discard(supplier)
        own = self._from(supplier)
        for view in own:
            self._told.pop(view, None)
        self._spread(own)

    def hear(self, supplier: str, told: Mapping[int, Iterable[str]]) -> None:
        for view, sites in told.items():
            if view not in self._views or self._views[view].supplier != supplier:
                raise RelayError(f"{supplier} has news of view {view}, which it does not send")
            self._told[view] = frozenset(sites)
        self._spread(list(told))

    def repeat(self, reader: str) -> None:
        """A reader has connected: it is told everything."""
        own = (number for number in self.waits() if reader in self._views[number].readers)
        self._to_tell[reader] = dict.fromkeys(own)

    def take(self, reader: str) -> dict[int, list[str]]:
        taken, self._to_tell[reader] = self._to_tell[reader], {}
        return {number: sorted(self._waits.get(number, NOBODY)) for number in taken}

    def waits(self) -> dict[int, Sites]:
        """The views that wait, each with the sites that it waits for."""
        return {number: sites for number, sites in self._waits.items() if sites}

    def _from(self, supplier: str) -> list[int]:
        return [number for number, view in self._views.items() if view.supplier == supplier]

    def _spread(self, views: Iterable[int]) -> None:
        waiting = list(views)
        while waiting:
            number = waiting.pop()
            view, before = self._views[number], self._waits.get(number, NOBODY)
            now = self._told.get(number, NOBODY).union(
                *(self._waits.get(member, NOBODY) for member in view.reads),
                {view.supplier} & self._gone,
            )
            if now != before:
                self._waits[number] = now
                waiting += view.used_by
                for reader in view.readers:
                    self._to_tell[reader][number] = None
