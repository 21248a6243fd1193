"""Stages on a log whose storage fails: no output is lost, none is committed twice."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.store.test_log import FaultyStorage

from headgate.pipeline.run_log import LogFollower, RunLog
from headgate.store.log_state import Origin, WrittenFile


def file(name: str) -> WrittenFile:
    return WrittenFile(f"data/g/{name}.parquet", f"data/g/{name}.segment", "g", 1, 100)


def names(log: RunLog) -> list[str]:
    return [each.items.removeprefix("data/g/").removesuffix(".parquet") for each in log.state.files]


class DoublingStage:
    """For each item of sources an output, in a file that is named after the item and the try."""

    def __init__(self, log: RunLog) -> None:
        self.follower = LogFollower(log, "double")
        self.tries = 0

    def step(self) -> None:
        part = self.follower.next_part()
        if part is None:
            return
        self.tries += 1
        items = [each.items for each in part.files if "+" not in each.items]
        self.follower.reached(part.end, self._outputs(items))

    def _outputs(self, items: Sequence[str]) -> list[WrittenFile]:
        stems = [each.removeprefix("data/g/").removesuffix(".parquet") for each in items]
        return [file(f"{stem}+{self.tries}") for stem in stems]


@pytest.mark.parametrize("fault", ["before", "after", "late"])
def test_a_stage_goes_on_from_what_the_log_has(fault: str) -> None:
    storage = FaultyStorage()
    log = RunLog(storage)
    stage = DoublingStage(log)
    log.commit(Origin("files", "a", 0), [file("x")])
    storage.fault = fault
    if fault == "after":
        stage.step()
    else:
        with pytest.raises(TimeoutError):
            stage.step()
    log.commit(Origin("files", "a", 1), [file("y")])
    stage.step()
    stage.step()
    outputs = [name.split("+") for name in names(log) if "+" in name]
    assert [item for item, _ in outputs] == ["x", "y"]
    tried_again = fault == "before"
    assert outputs[0] == ["x", "2" if tried_again else "1"]


def test_a_batch_whose_commit_had_no_answer_keeps_its_files() -> None:
    """Spark runs it again, with the same files or with others."""
    storage = FaultyStorage()
    log = RunLog(storage)
    for each in ("first", "second"):
        storage.write(f"data/g/{each}.parquet", b"")
        storage.write(f"data/g/{each}.segment", b"")
    storage.fault = "late"
    with pytest.raises(TimeoutError):
        log.commit(Origin("files", "a", 0), [file("first")])
    assert log.commit(Origin("files", "a", 0), [file("first")]) is None
    assert log.commit(Origin("files", "a", 0), [file("second")]) is None
    assert sorted(storage.names("data")) == ["data/g/first.parquet", "data/g/first.segment"]
    assert names(log) == ["first"]
