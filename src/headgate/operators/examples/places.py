"""Spatial operators on items with a latitude and a longitude ([Operators §2.1.2]).

    register operator locIn(area text) from 'headgate.operators.examples.places:loc_in';
    register operator locWithin(area text, metres float)
      from 'headgate.operators.examples.places:loc_within';
    register operator distanceFrom(area text, metres float)
      from 'headgate.operators.examples.places:distance_from';

    locIn('Bronx')    locWithin('Times Square', 5000)    distanceFrom('Statue of Liberty', ?x)

Areas and places are those of new_york.geojson: the boroughs with some twenty corners each, drawn by
hand, accurate to about a kilometre. Case and spaces in names are ignored.

Coordinates are projected on a plane that touches the Earth at the city, so distances are in metres;
within 50 km the error is below half a per cent. Rejected: distances on the ellipsoid, which shapely
does not support.

Cost: 0.1 µs for an item of a batch of 4,096.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import shapely

from headgate.model.errors import OperatorError, did_you_mean
from headgate.operators.declaration import batch_operator

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

MAP = Path(__file__).with_name("new_york.geojson")
CENTRE_LATITUDE, CENTRE_LONGITUDE = 40.75, -73.95
METRES_PER_DEGREE = 111_195.0
"""Of a great circle on a sphere as large as the Earth."""


@dataclass(frozen=True, slots=True)
class Area:
    name: str
    shape: shapely.Geometry

    @property
    def is_point(self) -> bool:
        return bool(shapely.get_dimensions(self.shape) == 0)


@batch_operator
def loc_in(batch: pa.RecordBatch, area: str) -> Bools:
    """Whether the item is in the area."""
    region = area_of(area)
    if region.is_point:
        raise OperatorError(f"'{region.name}' is a point without extent: use locWithin")
    x, y = plane(batch)
    return shapely.contains_xy(region.shape, x, y)  # type: ignore[no-any-return]


@batch_operator
def loc_within(batch: pa.RecordBatch, area: str, metres: float) -> Bools:
    """Whether the item is in the area, or at most so far from it."""
    return shapely.dwithin(area_of(area).shape, _points(batch), metres)  # type: ignore[no-any-return]


@batch_operator(binds=("metres",))
def distance_from(batch: pa.RecordBatch, area: str) -> pa.Array:
    """How far the item is from the area, which is zero inside of it."""
    metres = shapely.distance(area_of(area).shape, _points(batch))
    return pa.array(metres, mask=np.isnan(metres))


def area_of(name: str) -> Area:
    region = areas().get(_key(name))
    if region is None:
        near = did_you_mean(name, [each.name for each in areas().values()])
        raise OperatorError(f"'{name}' is not on the map" + (f": {near}" if near else ""))
    return region


@cache
def areas() -> dict[str, Area]:
    """The areas and places of the map, by key, on the plane."""
    by_key: dict[str, Area] = {}
    for feature in json.loads(MAP.read_text(encoding="utf-8"))["features"]:
        name, geometry = feature["properties"]["name"], feature["geometry"]
        shape = shapely.transform(shapely.from_geojson(json.dumps(geometry)), _projected)
        shapely.prepare(shape)
        by_key[_key(name)] = Area(name, shape)
    return by_key


def plane(batch: pa.RecordBatch) -> tuple[Floats, Floats]:
    """Metres east and north of the city's centre; NaN for items without coordinates."""
    missing = {"latitude", "longitude"} - set(batch.schema.names)
    if missing:
        raise OperatorError(f"items have no attribute '{min(missing)}'")
    longitude, latitude = (
        np.asarray(pc.fill_null(batch[name].cast(pa.float64()), math.nan))
        for name in ("longitude", "latitude")
    )
    projected = _projected(np.column_stack([longitude, latitude]))
    return projected[:, 0], projected[:, 1]


def _points(batch: pa.RecordBatch) -> npt.NDArray[np.object_]:
    """None for an item without coordinates, which is near nothing."""
    x, y = plane(batch)
    points: npt.NDArray[np.object_] = np.full(len(x), None)
    located = ~(np.isnan(x) | np.isnan(y))
    points[located] = shapely.points(x[located], y[located])
    return points


def degrees(east: float, north: float) -> tuple[float, float]:
    """Longitude and latitude of a place on the plane."""
    scale = math.cos(math.radians(CENTRE_LATITUDE))
    return (
        CENTRE_LONGITUDE + east / METRES_PER_DEGREE / scale,
        CENTRE_LATITUDE + north / METRES_PER_DEGREE,
    )


def _projected(coordinates: Floats) -> Floats:
    centre = np.array([CENTRE_LONGITUDE, CENTRE_LATITUDE])
    scale = np.array([math.cos(math.radians(CENTRE_LATITUDE)), 1.0])
    projected: Floats = (coordinates - centre) * scale * METRES_PER_DEGREE
    return projected


def _key(name: str) -> str:
    return "".join(name.casefold().split())
