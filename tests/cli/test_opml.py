"""OPML files are imported, with skipped lines listed, and exported."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from headgate.acquire.opml import read_opml
from headgate.cli.main import make_app

LIST = b"""<opml version="2.0"><body>
  <outline text="Music">
    <outline text="Muse" xmlUrl="https://muse.example/rss"/>
    <outline text="No address" type="rss"/>
    <outline text="Muse & friends" xmlUrl="https://friends.example/rss"/>
  </outline>
  <outline text="Odd" xmlUrl="file:///etc/passwd"/>
</body></opml>"""


def invoke(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(make_app(), list(arguments))
    assert done.exit_code == code, done.output
    return done.output


def test_import_lists_skipped_lines_and_export_writes_the_registered_feeds(tmp_path: Path) -> None:
    catalog, file = str(tmp_path / "c.db"), tmp_path / "list.opml"
    file.write_bytes(LIST)
    out = invoke("opml", "import", str(file), "--catalog", catalog)
    assert "line 4: 'No address' has no URL" in out
    assert "line 7: 'file:///etc/passwd' is not an http or https link" in out
    assert "registered 2 feeds, 0 were registered already, 2 lines could not be used" in out

    again = json.loads(invoke("opml", "import", str(file), "--catalog", catalog, "--json"))
    assert (again["registered"], again["known"], len(again["bad_lines"])) == (0, 2, 2)

    written = tmp_path / "out.opml"
    assert "wrote 2 feeds" in invoke("opml", "export", str(written), "--catalog", catalog)
    feeds = read_opml(written.read_bytes()).feeds
    assert [(each.title, each.url, each.folders) for each in feeds] == [
        ("Muse", "https://muse.example/rss", ("Music",)),
        ("MuseFriends", "https://friends.example/rss", ("Music",)),
    ]
    assert "https://muse.example/rss" in invoke("opml", "export", "--catalog", catalog)


def test_a_file_that_is_no_opml_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "list.opml"
    file.write_text("not a list")
    out = invoke("opml", "import", str(file), "--catalog", str(tmp_path / "c.db"), code=1)
    assert "it is not OPML" in out
    missing = invoke("opml", "import", str(tmp_path / "x"), "--catalog", "sqlite://", code=2)
    assert "cannot be read" in missing
