"""Charts are well-formed SVG with every name and value in them."""

from __future__ import annotations

from lxml import etree

from headgate.simulate.charts import LEFT, RIGHT, WIDTH, draw_bars, draw_lines

SVG = "{http://www.w3.org/2000/svg}"


def text_of(picture: str) -> str:
    return " ".join(etree.fromstring(picture.encode()).itertext())


def bars_of(picture: str) -> list[float]:
    return [
        float(bar.get("width"))
        for bar in etree.fromstring(picture.encode()).iter(f"{SVG}rect")
        if bar.get("x")
    ]


def test_bars_are_in_proportion() -> None:
    picture = draw_bars("Traffic", "kB", {"a": 10.0, "b <&>": 5.0, "c": 0.0})
    assert bars_of(picture) == [WIDTH - LEFT - RIGHT, (WIDTH - LEFT - RIGHT) / 2, 0.0]
    assert "b <&>" in text_of(picture)
    assert "logarithmic" not in text_of(picture)


def test_values_that_differ_much_are_shown_logarithmically() -> None:
    picture = draw_bars("Traffic", "kB", {"a": 10_000.0, "b": 10.0, "none": 0.0})
    assert "Traffic, kB (logarithmic)" in text_of(picture)
    longest, shortest, none = bars_of(picture)
    assert longest == WIDTH - LEFT - RIGHT
    assert 0 == none < shortest < longest / 2


def test_lines_have_a_legend_and_points() -> None:
    lines = {"one": [(0.0, 1.0), (10.0, 4.0)], "two": [(0.0, 2.0)]}
    picture = draw_lines("Latency", "level", "ms", lines)
    assert all(name in text_of(picture) for name in ("Latency", "level", "ms", "one", "two"))
    circles = list(etree.fromstring(picture.encode()).iter(f"{SVG}circle"))
    assert [float(circle.get("cx")) for circle in circles] == [LEFT, WIDTH - RIGHT, LEFT]
    heights = [float(circle.get("cy")) for circle in circles]
    assert heights[1] < heights[2] < heights[0]


def test_bars_of_zeros_can_be_drawn() -> None:
    assert bars_of(draw_bars("Traffic", "kB", {"a": 0.0})) == [0.0]
    etree.fromstring(draw_lines("Latency", "level", "ms", {"a": [(1.0, 0.0)]}).encode())
