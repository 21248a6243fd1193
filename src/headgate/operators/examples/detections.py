"""Patterns and counts over the objects that a detector has found in a picture ([Operators §2.1.1]).

The operators of the paper look at pictures. Object detection needs a model of gigabytes, so items
carry the output of such a model as JSON text in the attribute `detections`: what each object is,
where it is on the ground and how it moves, in metres and seconds.

    [["person", 12.5, 40.1, 0.3, 0.1], ["policeCar", -3.0, 2.0, 21.0, 0.0], …]
       what      east  north  velocity

    mobPattern(?people)           the largest crowd: people, each within 3 m of another one of it
    chasePattern(who, whom)       one follows the other, both fast and in the same direction
    trafficPattern('congestion')  many cars, and slow
    trafficPattern('accident')    two cars that stand on one spot
    pedestrianCount(?n), policeCarCount(?n), tourBoatCount(?n), coastGuardBoatCount(?n)

All are called item by item. A picture is parsed once for all operators that look at it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import shapely

from headgate.model.errors import OperatorError
from headgate.model.items import Item
from headgate.operators.declaration import binds

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

THINGS_MAX = 10_000
CROWD_GAP_M, MOB_MIN = 3.0, 5
CHASE_GAP_M, CHASE_SPEED, CHASE_COSINE = 80.0, 15.0, 0.9
CONGESTION_CARS, CONGESTION_SPEED = 12, 3.0
ACCIDENT_GAP_M, STANDING_SPEED = 2.5, 0.5
CARS = ("car", "policeCar", "taxi", "truck")
SCENES_KEPT = 4_096


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    kinds: tuple[str, ...]
    places: Floats
    velocities: Floats

    def of(self, kind: str) -> Bools:
        """Which of the things are of this kind; `anyCar` is a car of any kind."""
        kinds = CARS if kind == "anyCar" else (kind,)
        return np.array([each in kinds for each in self.kinds], np.bool_)

    @property
    def speeds(self) -> Floats:
        return np.hypot(self.velocities[:, 0], self.velocities[:, 1])


@binds("people")
def mob_pattern(item: Item) -> Iterator[tuple[int]]:
    scene = scene_of(item)
    largest = largest_crowd(scene.places[scene.of("person")])
    if largest >= MOB_MIN:
        yield (largest,)


def chase_pattern(item: Item, chaser: str, chased: str) -> bool:
    scene = scene_of(item)
    fast = scene.speeds >= CHASE_SPEED
    behind = np.flatnonzero(scene.of(chaser) & fast)
    ahead = np.flatnonzero(scene.of(chased) & fast)
    if not (behind.size and ahead.size):
        return False
    way = scene.places[ahead][None, :, :] - scene.places[behind][:, None, :]
    gap = np.linalg.norm(way, axis=2)
    heading = scene.velocities / np.maximum(scene.speeds, 1e-9)[:, None]
    towards = (way * heading[behind][:, None, :]).sum(axis=2) >= CHASE_COSINE * gap
    alike = heading[behind] @ heading[ahead].T >= CHASE_COSINE
    return bool((towards & alike & (gap > 0) & (gap <= CHASE_GAP_M)).any())


def traffic_pattern(item: Item, pattern: str) -> bool:
    scene = scene_of(item)
    cars = scene.of("anyCar")
    if pattern == "congestion":
        slow = scene.speeds[cars].mean() < CONGESTION_SPEED if cars.any() else False
        return bool(cars.sum() >= CONGESTION_CARS and slow)
    if pattern == "accident":
        standing = scene.places[cars & (scene.speeds < STANDING_SPEED)]
        return bool(_pairs_within(standing, ACCIDENT_GAP_M).size)
    raise OperatorError(f"there is no pattern '{pattern}': expected 'congestion' or 'accident'")


@binds("count")
def pedestrian_count(item: Item) -> Iterator[tuple[int]]:
    return count_of(item, "person")


@binds("count")
def police_car_count(item: Item) -> Iterator[tuple[int]]:
    return count_of(item, "policeCar")


@binds("count")
def tour_boat_count(item: Item) -> Iterator[tuple[int]]:
    return count_of(item, "tourBoat")


@binds("count")
def coast_guard_boat_count(item: Item) -> Iterator[tuple[int]]:
    return count_of(item, "coastGuardBoat")


def count_of(item: Item, kind: str) -> Iterator[tuple[int]]:
    yield (int(scene_of(item).of(kind).sum()),)


def scene_of(item: Item) -> Scene:
    detections = item.attributes.get("detections")
    if not isinstance(detections, str):
        raise OperatorError("the item has no text 'detections'")
    return _scene(detections)


@lru_cache(maxsize=SCENES_KEPT)
def _scene(text: str) -> Scene:
    detections = json.loads(text)
    if not isinstance(detections, list) or len(detections) > THINGS_MAX:
        raise OperatorError(f"detections are a list of at most {THINGS_MAX:,} entries")
    try:
        numbers = np.array([each[1:] for each in detections], np.float64)
        numbers = numbers.reshape(len(detections), 4)
        kinds = tuple(str(each[0]) for each in detections)
    except (TypeError, ValueError, IndexError, KeyError):
        raise OperatorError(
            "a detection must be [kind, east, north, velocity east, velocity north]"
        ) from None
    if not np.isfinite(numbers).all():
        raise OperatorError("the numbers of a detection must be finite")
    return Scene(kinds, numbers[:, :2], numbers[:, 2:])


def largest_crowd(places: Floats) -> int:
    """The size of the largest connected component, where places closer than CROWD_GAP_M are
    connected. A spatial index finds the pairs, and a depth-first search the components."""
    if not len(places):
        return 0
    near: list[list[int]] = [[] for _ in range(len(places))]
    for first, second in _pairs_within(places, CROWD_GAP_M).T.tolist():
        near[first].append(second)
        near[second].append(first)
    seen = [False] * len(places)
    largest = 0
    for start in range(len(places)):
        stack, size = ([] if seen[start] else [start]), 0
        seen[start] = True
        while stack:
            size += 1
            for place in near[stack.pop()]:
                if not seen[place]:
                    seen[place] = True
                    stack.append(place)
        largest = max(largest, size)
    return largest


def _pairs_within(places: Floats, metres: float) -> npt.NDArray[np.int64]:
    """Pairs of different places at most so far apart, as two rows."""
    points = shapely.points(places)
    pairs = shapely.STRtree(points).query(points, predicate="dwithin", distance=metres)
    return pairs[:, pairs[0] < pairs[1]]  # type: ignore[no-any-return]
