"""The process of one backtest or comparison that the service runs (service/backtest_jobs.py).

    standard input    one line of JSON: BacktestRequest; the process ends when its input does
    standard output   {"progress": "3 of 17 parts"} … {"result": {…}} or {"error": "…"}

It has limits of processor time and memory, and runs behind everything else of the machine. It has
the whole catalog and log: the service has checked what the tenant may ask.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import threading
import traceback
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from headgate.api.headgate import open as open_headgate
from headgate.model.errors import InvalidValue, LanguageError, PlanError

if TYPE_CHECKING:
    from headgate.pipeline.jobs.backtest import Backtest
    from headgate.pipeline.jobs.compare import FeedComparison

CPU_S_MAX = 300
MEMORY_BYTES_MAX = 2 * 2**30
"""Of private memory; files of the log that are mapped do not count."""
NICENESS = 10


@dataclass(frozen=True, slots=True)
class BacktestRequest:
    catalog: str
    """It may have a password, so it is no argument of the process."""
    folder: str
    log: str
    statement: str
    """With the names that the catalog keeps."""
    since: str
    until: str
    samples: int = 0
    at: str = ""
    """The instant whose definitions the statement is about; empty: now."""
    other: str = ""
    """A second statement, to compare the first one with."""
    other_at: str = ""

    def line(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"


def main() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S_MAX, CPU_S_MAX))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    os.nice(NICENESS)
    line = sys.stdin.readline()
    if not line:
        return
    threading.Thread(target=_end_with_input, daemon=True).start()
    request = BacktestRequest(**json.loads(line))
    try:
        _say({"result": _run(request)})
    except (LanguageError, PlanError, InvalidValue) as error:
        _say({"error": str(error)})
    except MemoryError:
        _say({"error": "it takes more memory than allowed"})
    except Exception:  # such as a folder that cannot be read: not for the tenant to know
        traceback.print_exc()
        _say({"error": "it has failed"})


def _end_with_input() -> None:
    """The service has gone, or has closed its end."""
    sys.stdin.read()
    os._exit(1)


def _run(request: BacktestRequest) -> Mapping[str, object]:
    since, until = map(datetime.fromisoformat, (request.since, request.until))
    at, other_at = _instant(request.at), _instant(request.other_at)

    def note(text: str) -> None:
        _say({"progress": text})

    with open_headgate(request.catalog, folder=request.folder, log=request.log) as h:
        if not request.other:
            found = h.backtest(
                request.statement,
                at=at,
                since=since,
                until=until,
                samples=request.samples,
                local=True,
                note=note,
            )
            return _as_json(found)
        compared = h.compare(
            request.statement,
            request.other,
            left_at=at,
            right_at=other_at,
            since=since,
            until=until,
            local=True,
            note=note,
        )
    return _compared_as_json(compared)


def _instant(text: str) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _compared_as_json(found: FeedComparison) -> Mapping[str, object]:
    return {
        "unknown": found.unknown,
        "left": found.left.matched,
        "right": found.right.matched,
        "only_left": found.only_left,
        "only_right": found.only_right,
        "first": None if found.first is None else found.first.position,
        "is_first_left": found.is_first_left,
    }


def _as_json(found: Backtest) -> Mapping[str, object]:
    return {
        "only_leaves": found.only_leaves,
        "by_day": {day.isoformat(): count for day, count in found.by_day.items()},
        "sources": {
            source: {
                "items": each.items.total(),
                "matched": each.matched.total(),
                "further": each.further.total(),
            }
            for source, each in found.sources.items()
        },
        "samples": [row.position for row in found.samples],
    }


def _say(message: Mapping[str, object]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
