"""The example operators compared with distances on the sphere and crowds by brute force."""

from __future__ import annotations

import json
import math
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from tests.operators.runtime_calls import INSTANT

from headgate.model.errors import OperatorError
from headgate.model.items import Item
from headgate.operators.examples import detections, places

BOROUGHS = ("Bronx", "Manhattan", "Queens", "Brooklyn", "StatenIsland")
LANDMARKS = {
    "Yankee Stadium": "Bronx",
    "Times Square": "Manhattan",
    "City Hall": "Manhattan",
    "LaGuardia Airport": "Queens",
    "Kennedy Airport": "Queens",
    "Coney Island": "Brooklyn",
    "Statue of Liberty": None,
}


def at(*where: tuple[float, float] | None) -> pa.RecordBatch:
    """Items at these longitudes and latitudes."""
    longitude = [None if each is None else each[0] for each in where]
    latitude = [None if each is None else each[1] for each in where]
    return pa.RecordBatch.from_pydict(
        {
            "longitude": pa.array(longitude, pa.float64()),
            "latitude": pa.array(latitude, pa.float64()),
        }
    )


def degrees_of(name: str) -> tuple[float, float]:
    point = places.area_of(name).shape
    return places.degrees(shapely.get_x(point), shapely.get_y(point))


def on_the_sphere_m(one: tuple[float, float], other: tuple[float, float]) -> float:
    (a, b), (c, d) = (tuple(map(math.radians, each)) for each in (one, other))
    h = math.sin((d - b) / 2) ** 2 + math.cos(b) * math.cos(d) * math.sin((c - a) / 2) ** 2
    return 2 * 6_371_008.8 * math.asin(math.sqrt(h))


def test_landmarks_lie_in_their_boroughs() -> None:
    for landmark, borough in LANDMARKS.items():
        here = at(degrees_of(landmark))
        found = [each for each in BOROUGHS if places.loc_in(here, each)[0]]
        assert found == ([borough] if borough else []), landmark


def test_boroughs_do_not_overlap() -> None:
    for one, other in combinations(BOROUGHS, 2):
        assert not shapely.intersects(places.area_of(one).shape, places.area_of(other).shape)
    assert all(shapely.is_valid(each.shape) for each in places.areas().values())


near = st.tuples(st.floats(-74.4, -73.5), st.floats(40.45, 41.05))


@given(near)
def test_distances_are_nearly_those_on_the_sphere(here: tuple[float, float]) -> None:
    for landmark in LANDMARKS:
        (metres,) = places.distance_from(at(here), landmark).to_pylist()
        expected = on_the_sphere_m(here, degrees_of(landmark))
        assert metres == pytest.approx(expected, rel=0.005, abs=0.5)
        assert places.loc_within(at(here), landmark, metres + 1)[0]
        assert not places.loc_within(at(here), landmark, metres - 1)[0]


def test_an_item_without_coordinates_is_in_no_area() -> None:
    batch = at(degrees_of("Times Square"), None)
    assert places.loc_in(batch, "manhattan").tolist() == [True, False]
    assert places.loc_within(batch, "TimesSquare", 1e9).tolist() == [True, False]
    assert places.distance_from(batch, "Times Square").to_pylist() == [0.0, None]


def test_names_that_are_not_on_the_map() -> None:
    with pytest.raises(OperatorError, match="'Bronks' is not on the map: did you mean 'Bronx'"):
        places.loc_in(at(None), "Bronks")
    with pytest.raises(OperatorError, match="without extent: use locWithin"):
        places.loc_in(at(None), "Times Square")
    with pytest.raises(OperatorError, match="no attribute 'longitude'"):
        places.loc_in(pa.RecordBatch.from_pydict({"latitude": [1.0]}), "Bronx")


def picture(*things: list[object]) -> Item:
    return Item("p", "Drones", INSTANT, {"detections": json.dumps(things)})


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=25))
def test_crowds_are_connected_components(where: list[tuple[int, int]]) -> None:
    groups = [{at} for at in range(len(where))]
    for one, other in combinations(range(len(where)), 2):
        if math.dist(where[one], where[other]) <= detections.CROWD_GAP_M:
            merged = groups[one] | groups[other]
            for each in merged:
                groups[each] = merged
    expected = max(map(len, groups), default=0)
    assert detections.largest_crowd(np.array(where, np.float64).reshape(-1, 2)) == expected


@pytest.mark.parametrize(
    ("police", "fugitive", "is_chase"),
    [
        ((0, 0, 25, 0), (30, 1, 28, 0), True),
        ((30, 0, 25, 0), (0, 1, 28, 0), False),  # the police is ahead
        ((0, 0, 25, 0), (30, 1, -28, 0), False),  # it comes towards the police
        ((0, 0, 25, 0), (30, 1, 4, 0), False),  # it parks
        ((0, 0, 25, 0), (200, 1, 28, 0), False),  # too far
        ((0, 0, 0, 25), (30, 0, 0, 28), False),  # side by side
    ],
)
def test_chases(police: tuple[float, ...], fugitive: tuple[float, ...], is_chase: bool) -> None:
    item = picture(["policeCar", *police], ["taxi", *fugitive])
    assert detections.chase_pattern(item, "policeCar", "anyCar") is is_chase


def test_a_car_does_not_chase_itself() -> None:
    assert not detections.chase_pattern(picture(["policeCar", 0, 0, 30, 0]), "policeCar", "anyCar")


def test_traffic() -> None:
    jam = [["car", 8 * at, 0, 1, 0] for at in range(12)]
    assert detections.traffic_pattern(picture(*jam), "congestion")
    assert not detections.traffic_pattern(picture(*jam[1:]), "congestion")
    assert not detections.traffic_pattern(picture(*jam), "accident")
    wreck = [["car", 0, 5, 0, 0], ["truck", 2, 5, 0, 0]]
    assert detections.traffic_pattern(picture(*jam, *wreck), "accident")
    with pytest.raises(OperatorError, match="no pattern 'jam'"):
        detections.traffic_pattern(picture(), "jam")


def test_counts() -> None:
    item = picture(*[["person", at, 0, 0, 0] for at in range(7)], ["policeCar", 0, 0, 0, 0])
    assert list(detections.pedestrian_count(item)) == [(7,)]
    assert list(detections.police_car_count(item)) == [(1,)]
    assert list(detections.tour_boat_count(item)) == [(0,)]
    assert list(detections.mob_pattern(item)) == [(7,)]
    assert list(detections.mob_pattern(picture())) == []


@pytest.mark.parametrize("text", ["", "{}", "[1]", '[["a"]]', '[["a",1,2,3,"x"]]', "[[]]", "7"])
def test_invalid_detections_are_refused(text: str) -> None:
    item = Item("p", "Drones", INSTANT, {"detections": text})
    with pytest.raises((OperatorError, ValueError)):
        detections.traffic_pattern(item, "accident")
    with pytest.raises(OperatorError, match="no text 'detections'"):
        detections.traffic_pattern(Item("p", "Drones", INSTANT, {}), "accident")
