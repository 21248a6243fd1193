"""The wheel that is built from the repository works outside of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
from tests.pipeline.waiting import until

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
    """It is stopped when something was delivered: kernels are compiled first, which takes long on a
    busy machine."""
    command = [str(installed / "venv" / "bin" / "python"), "-m", "headgate", "demo"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    feeds, out = tmp_path / "headgate-demo" / "feeds", tmp_path / "out"
    with out.open("wb") as file:
        process = subprocess.Popen(
            [*command, "--for", "10 minutes"],
            cwd=tmp_path,
            env=environment,
            stdout=file,
            stderr=file,
        )
    try:
        until(lambda: process.poll() is not None or (feeds.is_dir() and any(feeds.iterdir())))
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0, out.read_text()[-3_000:]
    finally:
        process.kill()
        process.wait()
    assert "the newsroom publishes at" in out.read_text()
    assert any(feeds.iterdir())
