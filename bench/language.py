"""Reading statements: how fast usual ones are, and how slow hostile ones can get.

The mutated statements are those of the fuzz test, which also judges that each gives a result or an
error. CPU time is taken for single statements, since another process may hold the core.
"""

from __future__ import annotations

import random
import time

from tests.cpu_time import cpu_time
from tests.language.test_fuzz import HOSTILE, SEEDS, mutate

from bench import Result, Row, Say
from headgate.language.parse import parse, read_script
from headgate.language.unparse import unparse

USUAL = {
    "subscribe": "subscribe to Rock output mail 'me@mail.org' every 3 hours for 30 days;",
    "[RoSeS §3.1], MusePhotoStream": """
create feed MusePhotoStream
from (RockConcertStream as $r | MuseNews) as $main
join last 3 months on (MusicPhotos as $m | FriendsPhotos) with $main[title similar window.title]
where $r[description contains 'Muse'] and $m[category = 'rock'];""",
    "a conjunction of ten": "create feed X from S where "
    + " and ".join(f"a{n} between {n} and {n + 5}" for n in range(10)),
}
SLOWEST_S = 0.1


def run(*, quick: bool, say: Say) -> Result:
    rows = [_usual(name, text, repeat=300 if quick else 3_000) for name, text in USUAL.items()]
    say("hostile statements")
    slowest = {name: _cpu_s(text) for name, text in HOSTILE.items()}
    worst = max(slowest, key=lambda name: slowest[name])
    rows.append(_slowest_row("hostile", f"{len(HOSTILE)} kinds; worst: {worst}", slowest[worst]))
    count = 5_000 if quick else 100_000
    say(f"{count:,} mutated statements")
    chance = random.Random(2026)
    took = [_cpu_s(mutate(chance.choice(SEEDS), chance)) for _ in range(count)]
    rows.append(_slowest_row("mutated", f"{count:,} statements, the slowest", max(took)))
    mean = sum(took) / count
    rows.append(Row("mutated", f"{count:,} statements, the mean", f"{mean * 1e6:.0f} µs"))
    return Result(rows)


def _usual(name: str, text: str, *, repeat: int) -> Row:
    statement = parse(text)
    began = time.thread_time()
    for _ in range(repeat):
        parse(text)
    parsed_s = (time.thread_time() - began) / repeat
    began = time.thread_time()
    for _ in range(repeat):
        unparse(statement)
    written_s = (time.thread_time() - began) / repeat
    ours = f"{parsed_s * 1e6:.0f} µs to read, {written_s * 1e6:.0f} µs to write"
    return Row("usual", name, ours)


def _slowest_row(figure: str, workload: str, took_s: float) -> Row:
    ours = f"{took_s * 1e3:.1f} ms"
    return Row(figure, workload, ours, target="≤ 100 ms", met=took_s <= SLOWEST_S)


def _cpu_s(text: str) -> float:
    return cpu_time(lambda: list(read_script(text)))[1]
