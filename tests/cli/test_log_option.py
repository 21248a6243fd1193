"""`--log` and `--folder`: an address that cannot work is refused before anything is made."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.headgate_command import Run


@pytest.mark.parametrize(
    ("arguments", "messages"),
    [
        (("run", "--folder", "s3a://bucket/hg"), ["--folder", "--log s3://"]),
        (("run", "--log", "s3a://bucket/hg"), ["--log", "did you mean s3://?"]),
        (("run", "--log", "s3://"), ["--log", "names no bucket"]),
        (("tail", "F", "--folder", "s3://bucket/hg"), ["--folder", "--log s3://"]),
        (("tail", "F", "--log", "ftp://host/hg"), ["--log", "Accepted are s3://"]),
        (("deliver", "--log", "ftp://host/hg"), ["--log", "Accepted are s3://"]),
    ],
)
def test_what_cannot_work_is_refused_at_once(
    arguments: tuple[str, ...], messages: list[str], headgate: Run, tmp_path: Path
) -> None:
    code, _, error = headgate(*arguments)
    assert code == 2
    shown = " ".join(error.replace("│", " ").split())
    for message in messages:
        assert message in shown
    assert not list(tmp_path.glob("s3*")), "no folder of that name is made"
