"""The wheel that is built from the repository works outside of it."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
SCRIPT = """
import headgate as hg
matcher = hg.Matcher({"price": "float", "to": "text"})
matcher.add_many({"cheap": "price < 100", "paris": "to contains 'Paris'"})
matcher.save("filters.headgate")
print(hg.__file__, hg.Matcher.open("filters.headgate").match({"price": 5, "to": "Paris"}))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an environment that has the wheel, and of this one all but Headgate itself."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    run([*pip, "wheel", "--no-deps", "-w", str(folder), str(ROOT)], folder)
    (wheel,) = folder.glob("headgate-*.whl")
    venv.create(folder / "venv", with_pip=False)
    (packages,) = (folder / "venv" / "lib").glob("python*/site-packages")
    run([*pip, "install", "--no-deps", "--target", str(packages), str(wheel)], folder)
    (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


def run(command: list[str], folder: Path) -> str:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command, cwd=folder, env=kept, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3_000:]
    return done.stdout


def test_a_matcher_works_in_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    out = run([str(installed / "venv" / "bin" / "python"), "-c", SCRIPT], tmp_path)
    assert str(installed) in out
    assert out.strip().endswith("['cheap', 'paris']")


def test_the_demo_runs_in_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    python = str(installed / "venv" / "bin" / "python")
    out = run([python, "-m", "headgate", "demo", "--for", "45 seconds"], tmp_path)
    assert "the newsroom publishes at" in out
    assert any((tmp_path / "headgate-demo" / "feeds").iterdir())
