"""How far the window joins of a run have come: one small file, replaced after each decision.

decided   all items that arrived until this instant were processed, and all their outputs are in
          the store and the outbox
number    of the next batch of outputs
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from headgate.model.errors import PipelineError
from headgate.store.whole_files import write_whole

NEVER = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class JoinProgress:
    decided: datetime = NEVER
    number: int = 0


def read_progress(path: Path) -> JoinProgress:
    if not path.exists():
        return JoinProgress()
    try:
        content = json.loads(path.read_bytes())
        return JoinProgress(datetime.fromisoformat(content["decided"]), int(content["number"]))
    except (ValueError, KeyError, TypeError) as error:
        raise PipelineError(f"'{path}' is damaged: {error}") from None


def write_progress(path: Path, progress: JoinProgress) -> None:
    content = {"decided": progress.decided.isoformat(), "number": progress.number}
    write_whole(path, json.dumps(content).encode())
