"""`Headgate.post` and `headgate post`."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import headgate as hg
from headgate.acquire.spool import Spool
from headgate.cli.main import make_app
from headgate.model.errors import CatalogError, UnknownName

SCRIPT = (
    "register stream Alerts from post (level int);"
    "register table Rows (id int key, v text) from post;"
    "register stream Files from json 'a/*.json' (level int);"
)


def test_post_and_its_refusals(tmp_path: Path) -> None:
    with hg.open(f"sqlite:///{tmp_path}/h.db", folder=tmp_path / "data") as h:
        h.execute(SCRIPT)
        result = h.post("Alerts", [{"level": 1}, {"level": "x"}, b'{"level": 2}'])
        assert result.accepted == 2
        ((number, reason),) = result.rejected
        assert number == 2
        assert "expected an int" in reason
        assert h.post("Rows", [{"v": "no key"}]).rejected == ((1, "the key 'id' is missing"),)
        with pytest.raises(CatalogError, match="not registered 'from post'"):
            h.post("Files", [])
        with pytest.raises(UnknownName):
            h.post("Nobody", [])
        h.execute("register stream Later from post (level int)")
        assert h.post("Later", [{"level": 3}]).accepted == 1
    (folder,) = (tmp_path / "data" / "sources").glob("post-*/spool/1.events")
    spool = Spool(folder.parent)
    frames = list(spool.frames(spool.first(), spool.end()))
    assert [(each.source, each.events) for each in frames] == [("Alerts", 2), ("Later", 1)]


def test_the_command_names_the_lines_that_do_not_fit(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/h.db"
    with hg.open(url) as h:
        h.execute(SCRIPT)
    done = CliRunner().invoke(
        make_app(["post", "show"]),
        ["post", "Alerts", "--catalog", url, "--folder", str(tmp_path / "data")],
        input='{"level": 1}\n\n{"level": []}\n{"level": 2}\n',
    )
    assert done.exit_code == 1
    assert "2 events accepted, 1 rejected" in done.output
    assert "line 3" in done.output
