"""What is followed change by change is what the catalog has as a whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.catalog.catalog import Catalog
from headgate.catalog.definitions import DefinitionKind
from headgate.language.parse import parse_script
from headgate.pipeline import write_plans
from headgate.pipeline.layer_builder import FEEDS, SOURCES, RegisteredDefinitions
from headgate.pipeline.planner import Planner
from headgate.store.data_folder import DataFolder

Steps = st.lists(
    st.tuples(
        st.sampled_from(["source", "source", "feed", "feed", "drop", "again", "subscribe", "look"]),
        st.integers(0, 3),
        st.sampled_from(["a int", "b text"]),
    ),
    max_size=30,
)


@given(Steps)
@settings(deadline=None)
def test_histories(steps: list[tuple[str, int, str]]) -> None:
    with Catalog.open("sqlite://") as catalog:
        registered = RegisteredDefinitions()
        sources: set[int] = set()
        feeds: set[int] = set()
        subscribed: set[int] = set()
        for step, n, attribute in [*steps, ("look", 0, "")]:
            statements: list[str] = []
            if step == "source" and n not in sources:
                statements = [f"register stream S{n} from json 's' ({attribute});"]
                sources.add(n)
            elif step == "feed" and n in sources and n not in feeds:
                statements = [f"create feed F{n} from S{n};"]
                feeds.add(n)
            elif step == "drop" and n in feeds:
                statements = [f"drop feed F{n};"]
                feeds.remove(n)
            elif step == "again" and n in sources - feeds - subscribed:
                # Between two looks it is dropped and made anew, perhaps as something else.
                statements = [f"drop stream S{n};", f"register stream S{n} from json 's' (c int);"]
            elif step == "subscribe" and n in sources:
                statements = [f"subscribe to S{n} output console for 30 days;"]
                subscribed.add(n)
            elif step == "look":
                look(registered, catalog)
            for each in statements:
                catalog.apply(parse_script(each))


def look(registered: RegisteredDefinitions, catalog: Catalog) -> None:
    with catalog.looking_up() as definitions:
        registered.follow(definitions)
        assert not registered.follow(definitions)
    whole = catalog.definitions()
    kinds: dict[str, DefinitionKind] = {}
    for name in whole:
        entry = whole.entry(name)
        assert entry is not None
        kinds[name] = entry.kind
    feeds = {whole.number_of(name): name for name, kind in kinds.items() if kind in FEEDS}
    assert registered.feeds == feeds
    sources = {name: whole[name] for name, kind in kinds.items() if kind in SOURCES}
    assert registered.sources == sources
    assert registered.schemas.keys() == sources.keys()
    for name, schema in registered.schemas.items():
        assert schema.attributes == sources[name].attributes  # type: ignore[union-attr]


def test_planning_that_was_cut_off_is_done_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Catalog.open("sqlite://") as catalog:
        catalog.apply(parse_script("register stream S from json 's' (a int);"))
        planner = Planner(catalog, DataFolder(tmp_path).make())
        catalog.apply(parse_script("create feed F from S where a > 1;"))

        def full(*_: object) -> None:
            raise OSError("the disk is full")

        with monkeypatch.context() as patched:
            patched.setattr(write_plans, "write_source_plan", full)
            with pytest.raises(OSError, match="full"):
                planner.update()
        planned = planner.update()
        assert list(planned.names.values()) == ["F"]
        assert [layer.feeds.size for layer in planned.snapshot.layers] == [1]


def test_who_subscribes_changes_no_snapshot(tmp_path: Path) -> None:
    with Catalog.open("sqlite://") as catalog:
        catalog.apply(parse_script("register stream S from json 's' (a int);"))
        planner = Planner(catalog, DataFolder(tmp_path).make())
        before = planner.update()
        catalog.apply(parse_script("subscribe to S output console for 30 days;"))
        assert planner.update() is before
