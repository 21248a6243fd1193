"""A configuration prints and draws itself, whatever its feeds are called."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree
from tests.network.configuration_problems import problem_of

from headgate.network.configuration import SOURCE, Configuration
from headgate.network.draw_network import COLUMN_MAX, draw_network
from headgate.network.explain_network import (
    FedView,
    ViewLabel,
    explain_network,
    fed_views,
)
from headgate.network.physical_plans import AT_VIEW

LABELS = [ViewLabel("Asia", "Paris"), ViewLabel("Sales", "Sales"), ViewLabel("Both", "Rome")]


def example() -> list[FedView]:
    problem = problem_of([[], [], [(0, 1)]], limit=2)
    result = Configuration.of(problem, np.array([SOURCE, SOURCE, 0]))
    return fed_views(result, LABELS, np.array([0], np.int32))


def test_it_prints_levels_members_and_loads() -> None:
    assert explain_network(example()) == (
        "level 1, 2 views\n"
        "  Asia at Paris  from the source (no other way)                 feeds 1 of 2\n"
        "  Sales          from the source (no other way)                 feeds 1 of 2\n"
        "level 2, 1 view\n"
        "  Both at Rome   from Asia at Paris ⋈ Sales, computed at Paris  feeds 0 of 2"
    )


def test_a_join_at_the_views_own_site_is_not_mentioned() -> None:
    problem = problem_of([[], [], [(0, 1)]])
    result = Configuration.of(problem, np.array([SOURCE, SOURCE, 0]))
    (last,) = (each for each in fed_views(result, LABELS, np.array([AT_VIEW])) if each.members)
    assert last.source_text() == "from Asia at Paris ⋈ Sales"
    assert last.load_text() == "feeds 0"
    (none, one) = (replace(last, members=(), ways=each).source_text() for each in (0, 1))
    assert (none, one) == ("from the source (no other way)", "from the source (1 other way)")


def test_it_draws_a_box_for_each_view_and_a_line_for_each_feed() -> None:
    picture = etree.fromstring(draw_network(example()).encode())
    assert len(picture.findall(".//{*}rect")) == 1 + 3
    assert len(picture.findall(".//{*}path")) == 2 + 2
    assert draw_network(example()) == draw_network(example())


def test_a_large_level_shows_how_many_views_are_left_out() -> None:
    views = [FedView(ViewLabel(f"v{n}", "s"), 1, (), "s", n, None) for n in range(COLUMN_MAX + 7)]
    text = draw_network(views)
    assert "… and 7 more" in text
    assert f">v{COLUMN_MAX + 6} at s<" in text
    assert ">v0 at s<" not in text


@given(st.text(max_size=60), st.text(max_size=60))
@settings(max_examples=60)
def test_any_name_makes_well_formed_svg(name: str, site: str) -> None:
    view = FedView(ViewLabel(name, site), 1, (), site, 0, 3)
    assert etree.fromstring(draw_network([view]).encode()) is not None
