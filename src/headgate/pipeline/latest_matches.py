"""The last matches of a run, for its screen: a few rows of the newest files of the log.

Only the screen asks, a few times a second. A file is looked at once; one with a large index is left
out, as counting which feeds have a row would read all of it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from headgate.model.errors import LogError
from headgate.pipeline.planner import CurrentPlans
from headgate.pipeline.run_log import RunLog
from headgate.store.log_index import ItemPlace, open_placed
from headgate.store.log_items import LoggedItem, read_items
from headgate.store.log_state import LogFile

SHOWN = 20
FILES_AT_ONCE = 4
INDEX_BYTES_MAX = 1_000_000


@dataclass(frozen=True, slots=True)
class LatestMatch:
    """An item and the name of a feed that has it."""

    feed: str
    item: LoggedItem


@dataclass(slots=True)
class LatestMatches:
    """For one thread."""

    log: RunLog
    _matches: deque[LatestMatch] = field(default_factory=lambda: deque(maxlen=SHOWN))
    _position: int = 0

    def look(self, plans: CurrentPlans) -> tuple[LatestMatch, ...]:
        state = self.log.state
        files = [file for file in state.files if file.first >= self._position]
        for file in files[-FILES_AT_ONCE:]:
            try:
                self._matches.extend(self._of_file(file, plans))
            except (FileNotFoundError, LogError):
                continue  # it was merged or trimmed meanwhile
        self._position = state.next_position
        return tuple(self._matches)

    def _of_file(self, file: LogFile, plans: CurrentPlans) -> list[LatestMatch]:
        segment = open_placed(self.log.storage, file)
        if segment.feeds.data.size > INDEX_BYTES_MAX:
            return []
        feeds, rows = segment.feeds.pairs()
        last = np.argsort(rows, kind="stable")[-SHOWN:]
        pairs = [(plans.names.get(int(feeds[n])), int(rows[n])) for n in last]
        named = [(name, row) for name, row in pairs if name is not None]
        numbers = np.array([row for _, row in named], np.int64)
        positions = segment.runs.positions(numbers).tolist() if named else []
        places = [
            ItemPlace(position, file, row, file.arrived_us)
            for position, (_, row) in zip(positions, named, strict=True)
        ]
        items = read_items(self.log.storage, places)
        return [LatestMatch(name, item) for (name, _), item in zip(named, items, strict=True)]
