"""Enters the inputs of a run in a process of its own: `python -m … DOOR RUN COUNT SEED BEHIND`.

RUN is `quick` or `full`. BEHIND is the number of the last input that an earlier process of the run
has entered, -1 if there was none.

One line of JSON before each input and one after it, so that the parent knows which input a process
has died of. Memory is the largest resident size while the input was inside, the interpreter and
its libraries included.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from contextlib import suppress
from pathlib import Path

from bench.hostile_inputs.door import Door
from bench.hostile_inputs.doors import door_of
from bench.hostile_inputs.inputs import input_of, numbers_of
from headgate.model.errors import HeadgateError

ADDRESS_SPACE_BYTES = 8 << 30
_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


def main() -> None:
    name, run, count, seed, behind = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE_BYTES, ADDRESS_SPACE_BYTES))
    door = door_of(name)
    numbers = [n for n in numbers_of(door, int(count), quick=run == "quick") if n > int(behind)]
    if not numbers:
        return
    for each in door.seeds():  # what is loaded and compiled once is not the input's cost
        list(door.enter(each))
    for number in numbers:
        data = input_of(door, number, seed=int(seed))
        _say({"began": number, "size": len(data)})
        _say(report_on(door, data))


def report_on(door: Door, data: bytes) -> dict[str, object]:
    """CPU seconds of the slowest unit of work, largest resident size, what is wrong with the
    account, and a crash if any."""
    with suppress(OSError):
        _CLEAR.write_text("5")  # the largest size so far is forgotten
    wrong = crash = ""
    cpu_s, began = 0.0, time.process_time()
    try:
        for found in door.enter(data):
            wrong = wrong or found
            now = time.process_time()
            cpu_s, began = max(cpu_s, now - began), now
    except HeadgateError:
        pass
    except Exception as error:
        crash = f"{type(error).__name__}: {error}"[:300]
    return {
        "cpu_s": max(cpu_s, time.process_time() - began),
        "bytes": _largest(),
        "wrong": wrong,
        "crash": crash,
    }


def _largest() -> int:
    try:
        line = next(each for each in _STATUS.read_text().splitlines() if each.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _say(report: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(report) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
