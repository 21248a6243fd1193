"""`headgate backup` and `headgate restore` on the command line."""

from __future__ import annotations

from pathlib import Path

from tests.cli.headgate_command import Run
from tests.deliver.log_world import news
from tests.pipeline.operated_folder import OperatedFolder


def test_a_backup_is_made_and_restored(headgate: Run, tmp_path: Path) -> None:
    operated = OperatedFolder(tmp_path)
    operated.catalog.installation_key()
    operated.world.publish(news("n0"), news("n1"))
    operated.close()
    old = ("--catalog", "headgate.db", "--folder", "data")
    new = ("--catalog", "new.db", "--folder", "new")
    code, out, _ = headgate("backup", "safe", *old)
    assert code == 0
    assert out.startswith("backed up 2 positions of the log: ")
    assert headgate("restore", "safe", *old)[0] == 3, "nothing is written over"
    code, out, _ = headgate("restore", "safe", *new)
    assert code == 0
    assert out.startswith("restored 2 positions of the log: ")
    code, out, _ = headgate("show", "subscriptions", "--catalog", "new.db")
    assert "rock.atom" in out
    segment = next((tmp_path / "safe").rglob("*.segment"))
    segment.write_bytes(segment.read_bytes()[:-1] + b"?")
    code, _, error = headgate("restore", "safe", "--catalog", "c.db", "--folder", "d")
    assert code == 3
    assert segment.name in error
    assert not (tmp_path / "c.db").exists()
