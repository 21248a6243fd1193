"""Generates items of drones over the city, among them what S1 to S5 of [Operators] look for.

    python -m headgate.operators.examples.drones 80 > drones.json

One JSON object in a line. The same number and seed give the same lines.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from random import Random

import shapely

from headgate.operators.examples.places import areas, degrees

Thing = list[str | float]
Scene = list[Thing]

BEGIN = datetime(2026, 11, 16, 8, 0, tzinfo=UTC)
OVER = ("Bronx", "Bronx", "Manhattan", "Manhattan", "Queens", "Brooklyn", "Times Square")
HARBOUR = "Statue of Liberty"


def drones(count: int, seed: int = 7) -> Iterator[dict[str, object]]:
    """The items: a drone, where and when it is, and what is in its picture."""
    random = Random(seed)
    for number in range(count):
        over = HARBOUR if random.random() < 0.2 else random.choice(OVER)
        longitude, latitude = degrees(*_place_in(over, random))
        scene = _harbour(random) if over == HARBOUR else random.choice(_SCENES)(random)
        yield {
            "id": f"drone-{number}",
            "time": (BEGIN + timedelta(seconds=7 * number)).isoformat(),
            "latitude": round(latitude, 5),
            "longitude": round(longitude, 5),
            "altitude": round(random.uniform(60, 180), 1),
            "speed": round(random.uniform(0, 25), 1),
            "detections": json.dumps(_rounded(scene), separators=(",", ":")),
        }


def _place_in(name: str, random: Random) -> tuple[float, float]:
    """Somewhere in the area, or within 1.5 km of the place."""
    shape = areas()["".join(name.casefold().split())].shape
    wide = shapely.buffer(shape, 1_500) if shapely.get_dimensions(shape) == 0 else shape
    west, south, east, north = shapely.bounds(wide).tolist()
    while True:
        x, y = random.uniform(west, east), random.uniform(south, north)
        if shapely.contains_xy(wide, x, y):
            return x, y


def _people(random: Random, count: int, *, spread_m: float) -> Scene:
    return [
        ["person", random.gauss(0, spread_m), random.gauss(0, spread_m), random.gauss(0, 1), 0.0]
        for _ in range(count)
    ]


def _cars(random: Random, count: int, *, speed: float, gap_m: float) -> Scene:
    return [
        [
            random.choice(("car", "car", "taxi", "truck")),
            gap_m * at,
            4.0,
            speed + random.random(),
            0,
        ]
        for at in range(count)
    ]


def _quiet(random: Random) -> Scene:
    walking = _people(random, random.randint(0, 12), spread_m=40)
    return walking + _cars(random, random.randint(0, 6), speed=11, gap_m=30)


def _busy(random: Random) -> Scene:
    """Many people, who do not stand together, and a traffic jam; sometimes police."""
    walking = _people(random, random.randint(150, 320), spread_m=120)
    police: Scene = [["policeCar", 300.0 * at, 9.0, 2.0, 0.0] for at in range(random.randint(0, 3))]
    return walking + police + _cars(random, random.randint(12, 25), speed=0.6, gap_m=8)


def _mob(random: Random) -> Scene:
    return _people(random, random.randint(20, 110), spread_m=4) + _quiet(random)


def _chase(random: Random) -> Scene:
    gap = random.uniform(15, 110)
    return [["policeCar", 0, 0, 24, 0], ["car", gap, 1, 26, 0], *_quiet(random)]


def _accident(random: Random) -> Scene:
    wreck = random.uniform(100, 200)
    police: Scene = [["policeCar", wreck + 9 * at, 9, 0, 0] for at in range(random.randint(0, 3))]
    jam = _cars(random, random.randint(8, 20), speed=0.3, gap_m=7)
    return [["car", wreck, 0.5, 0, 0], ["truck", wreck + 1.8, 0, 0, 0], *police, *jam]


def _harbour(random: Random) -> Scene:
    kinds = {"tourBoat": random.randint(0, 8), "coastGuardBoat": random.randint(0, 3)}
    return [
        [kind, random.uniform(-400, 400), random.uniform(-400, 400), random.uniform(0, 6), 0.0]
        for kind, count in kinds.items()
        for _ in range(count)
    ]


_SCENES: tuple[Callable[[Random], Scene], ...] = (_quiet, _busy, _mob, _chase, _accident)


def _rounded(scene: Scene) -> Scene:
    return [
        [each if isinstance(each, str) else round(each, 1) for each in thing] for thing in scene
    ]


def main(arguments: list[str]) -> None:
    for item in drones(int(arguments[0]) if arguments else 80):
        sys.stdout.write(json.dumps(item) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
