"""Snapshots follow the catalog: whatever is created and dropped, what is matched is right."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.catalog.catalog import Catalog
from headgate.language.parse import parse_script
from headgate.match.item_columns import items_to_arrow
from headgate.model.errors import PipelineError
from headgate.model.items import Item
from headgate.pipeline import snapshot as snapshot_module
from headgate.pipeline.match_stage import MatchConfig, match_batch
from headgate.pipeline.planner import CurrentPlans, LayerMerge, Planner
from headgate.pipeline.snapshot import open_snapshot, read_snapshot
from headgate.store.data_folder import DataFolder
from headgate.store.log_storage import FolderStorage
from headgate.tables.stored_boxes import gathered_boxes, open_boxes

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
SOURCES = (
    "register stream S from json 's' (a int, b text); register stream T from json 't' (a int);"
)
VALUES = range(0, 12)


def matched(planned: CurrentPlans, source: str) -> dict[int, set[str]]:
    """For each value of `a` the feeds that have such an item."""
    items = [Item(str(n), source, NOON, {"a": n}) for n in VALUES]
    opened = open_snapshot(DataFolder(planned.path.parents[1]), planned.path.name)
    asked = MatchConfig(opened.plans, opened.dropped, every=True)
    found = pa.Table.from_batches(
        match_batch(items_to_arrow(items, planned.schemas[source]), asked)
    )
    return {
        int(row["@id"]): {planned.names[each] for each in row["@feeds"]}
        for row in found.to_pylist()
    }


Steps = st.lists(
    st.tuples(
        st.sampled_from(
            ["create", "create", "create", "drop", "restart", "merge", "begin", "end", "update"]
        ),
        st.integers(0, 5),
        st.integers(min(VALUES), max(VALUES)),
        st.sampled_from(["S", "T", "(S | T)"]),
    ),
    min_size=1,
    max_size=30,
)


@given(Steps)
@settings(deadline=None)
def test_histories(steps: list[tuple[str, int, int, str]]) -> None:
    with TemporaryDirectory() as home:
        folder = DataFolder(Path(home)).make()
        catalog = Catalog.open("sqlite://")
        catalog.apply(parse_script(SOURCES))
        planner = Planner(catalog, folder)
        feeds: dict[str, tuple[int, str]] = {}
        task: LayerMerge | None = None
        for step, number, bound, source in steps:
            name = f"F{number}"
            if step == "create" and name not in feeds:
                text = f"create feed {name} from {source} where a > {bound};"
                catalog.apply(parse_script(text))
                feeds[name] = bound, source
            elif step == "drop" and name in feeds:
                catalog.apply(parse_script(f"drop feed {name};"))
                del feeds[name]
            elif step == "restart":
                planner, task = Planner(catalog, folder), None
            elif step == "begin" and task is None:
                task = planner.to_merge()
            elif step == "end" and task is not None:
                # What came and went since then is as it was.
                planner.adopt(task.run())
                task = None
            elif step == "merge" and task is None:
                planner.update()
                planner.merge()
                assert not planner.current.snapshot.has_to_merge()
            planned = planner.update()
            for own in ("S", "T"):
                expected = {
                    n: {
                        each for each, (least, where) in feeds.items() if own in where and n > least
                    }
                    for n in VALUES
                }
                assert matched(planned, own) == expected
        catalog.close()


@pytest.fixture
def catalog():
    with Catalog.open("sqlite://") as opened:
        opened.apply(parse_script(SOURCES))
        yield opened


def test_without_a_change_nothing_is_planned(catalog: Catalog, tmp_path: Path) -> None:
    planner = Planner(catalog, DataFolder(tmp_path).make())
    first = planner.update()
    assert planner.update() is first
    catalog.apply(parse_script("create feed A from S where a > 1;"))
    second = planner.update()
    assert second is not first
    assert [layer.feeds.tolist() for layer in second.snapshot.layers] == [[3]]
    assert catalog.list_snapshots()[0].path == second.path.name


def test_one_more_feed_beside_many_is_a_layer_of_its_own(catalog: Catalog, tmp_path: Path) -> None:
    notes: list[str] = []
    planner = Planner(catalog, DataFolder(tmp_path).make(), note=notes.append)
    many = "".join(f"create feed F{n} from S where a > {n};" for n in range(100))
    catalog.apply(parse_script(many))
    planner.update()
    catalog.apply(parse_script("create feed One from S where a > 7;"))
    layers = planner.update().snapshot.layers
    assert [len(layer.feeds) for layer in layers] == [100, 1]
    assert notes == ["planning 100 feeds", "planning 1 feeds"]
    planner.merge()
    assert len(planner.current.snapshot.layers) == 2


def test_plans_of_joins_are_there_also_after_a_restart(catalog: Catalog, tmp_path: Path) -> None:
    text = "create feed J from S as $s join last 1 hour on T with $s[a = window.a];"
    catalog.apply(parse_script(text))
    folder = DataFolder(tmp_path).make()
    first = Planner(catalog, folder).update()
    again = Planner(catalog, folder).update()
    assert list(first.join_plans) == ["J"]
    assert first.join_plans == again.join_plans
    catalog.apply(parse_script("drop feed J;"))
    assert Planner(catalog, folder).update().join_plans == {}


def test_a_feed_beyond_the_limits_stops_no_other(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.apply(
        parse_script(
            "create feed Good from S where a > 5; create feed Bad from (S | T) where a > 3;"
            "create feed Other from T where a > 5;"
        )
    )
    monkeypatch.setattr("headgate.plan.normalize.BRANCHES_MAX", 1)
    planned = Planner(catalog, DataFolder(tmp_path).make()).update()
    assert list(planned.refused) == ["Bad"]
    assert matched(planned, "S")[6] == {"Good"}
    assert matched(planned, "T")[6] == {"Other"}


@pytest.mark.parametrize("change", ["truncate", "flip", "format"])
def test_a_damaged_snapshot_is_refused(catalog: Catalog, tmp_path: Path, change: str) -> None:
    planned = Planner(catalog, DataFolder(tmp_path).make()).update()
    content = planned.path.read_bytes()
    changed = {
        "truncate": content[:-3],
        "flip": content.replace(b'"dropped":[]', b'"dropped":[3]'),
        "format": content.replace(b'"format":5', b'"format":4'),
    }[change]
    planned.path.write_bytes(changed)
    with pytest.raises(PipelineError, match="cannot be used"):
        read_snapshot(planned.path)


def test_layers_are_geometric() -> None:
    layer = snapshot_module.Layer
    many, few = np.arange(80, dtype=np.int32), np.arange(2, dtype=np.int32)
    snapshot = snapshot_module.PlanSnapshot(1, (layer(many, {}), layer(few, {})))
    assert not snapshot.has_to_merge()


JOINS = """
register table R (k int key, b int, a float) from json 'r/*.json';
register table T2 (k int key, b int, c float) from json 's/*.json';
create feed One from R as $r join T2 as $s on b where $r[a > 5];
create feed Mixed from (One | S) where a > 3;
"""


def test_joins_of_tables_are_in_layers_of_their_own(catalog: Catalog, tmp_path: Path) -> None:
    """Programs know nothing of them; what is new, dropped or merged is so here too."""
    catalog.apply(parse_script(JOINS))
    folder = DataFolder(tmp_path).make()
    planner = Planner(catalog, folder)
    planned = planner.update()
    assert not planned.refused
    assert planned.join_plans == {}
    assert planned.snapshot.layers[0].plans.keys() == {"S"}
    (group,) = planned.snapshot.groups.values()
    assert [each.name for each in group.tables] == ["R", "T2"]
    assert _joined(planned) == {"One": 1, "Mixed": 1}
    catalog.apply(
        parse_script(
            "create feed Two from R as $r join T2 as $s on b where $s[c < 9]; drop feed Mixed;"
        )
    )
    again = Planner(catalog, folder).update()
    assert len(again.snapshot.layers) == 2
    assert _joined(again) == {"One": 1, "Two": 1}
    assert list(again.snapshot.groups) == [group.name]
    merged = Planner(catalog, folder)
    merged.update()
    assert _joined(merged.merge()) == {"One": 1, "Two": 1}
    assert len(merged.current.snapshot.layers) == 1
    (number,) = (n for n, name in merged.current.names.items() if name == "Two")
    assert list(merged.plans_of([number, 10_000])) == [number]


def _joined(planned: CurrentPlans) -> Counter[str]:
    """How many subscriptions workers find for each feed."""
    opened = open_snapshot(DataFolder(planned.path.parents[1]), planned.path.name)
    (files,) = opened.joins.values()
    found = gathered_boxes([open_boxes(Path(each)) for each in files], opened.dropped)
    living = found.trees[0].subscription
    return Counter(planned.names[n] for n in found.feeds[living[living >= 0]].tolist())


def test_with_the_log_elsewhere_workers_need_no_folder(tmp_path: Path) -> None:
    """The same matches from copies alone; what is there already is not uploaded again."""
    folder = DataFolder(tmp_path / "data", f"file://{tmp_path}/log").make()
    catalog = Catalog.open(str(tmp_path / "catalog.db"))
    catalog.apply(parse_script("register stream S from json 's.json' (a int);"))
    catalog.apply(parse_script("create feed F from S where a > 3;"))
    planned = Planner(catalog, folder).update()
    uploaded = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "log/plans").iterdir()}
    assert planned.path.name in uploaded
    opened = open_snapshot(DataFolder(Path("/nowhere"), folder.log), planned.path.name)
    (path,) = opened.plans["S"]
    assert Path(path).parent == tmp_path / "log/plans"
    assert Path(path).exists()
    again = Planner(catalog, folder)
    assert again.update().path.name == planned.path.name
    still = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "log/plans").iterdir()}
    assert still == uploaded
    catalog.close()


def test_an_upload_that_fails_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = DataFolder(tmp_path / "data", f"file://{tmp_path}/log").make()
    catalog = Catalog.open(str(tmp_path / "catalog.db"))
    catalog.apply(parse_script("register stream S from json 's.json' (a int);"))
    planner = Planner(catalog, folder)
    before = planner.update()
    catalog.apply(parse_script("create feed F from S where a > 3;"))
    with monkeypatch.context() as patch:
        patch.setattr(FolderStorage, "write", _refuse)
        with pytest.raises(OSError, match="full"):
            planner.update()
        assert planner.current is before, "a snapshot that workers cannot read is not used"
    assert "S" in planner.update().snapshot.layers[0].plans
    catalog.close()


def _refuse(*_: object) -> None:
    raise OSError("full")
