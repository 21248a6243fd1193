"""What all tests share: Hypothesis profiles, golden files and the command line."""

import difflib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings
from tests.cli.headgate_command import Run, command_runner

GOLDEN = Path(__file__).parent / "golden"

settings.register_profile("ci", deadline=None, max_examples=100, derandomize=False, print_blob=True)
settings.register_profile("quick", settings.get_profile("ci"), max_examples=25)
settings.register_profile("thorough", settings.get_profile("ci"), max_examples=1000)
# Keys of installations whose catalog is in PostgreSQL; processes that tests start have it, too.
os.environ["XDG_DATA_HOME"] = tempfile.mkdtemp(prefix="headgate-test-data-")

settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or "ci")


def compare_with_golden(name: str, text: str) -> None:
    path = GOLDEN / name
    assert path.resolve().is_relative_to(GOLDEN.resolve()), f"{name} leaves tests/golden"
    if os.environ.get("REWRITE") == "1":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return
    if not path.exists():
        pytest.fail(
            f"tests/golden/{name} is missing: run with REWRITE=1 to write it", pytrace=False
        )
    expected = path.read_text(encoding="utf-8")
    if text != expected:
        diff = difflib.unified_diff(
            expected.splitlines(),
            text.splitlines(),
            f"tests/golden/{name}",
            "now",
            lineterm="",
        )
        # Texts that differ in their last newline only have no diff of lines.
        shown = "\n".join(diff) or f"only line ends differ: {expected[-20:]!r}, now {text[-20:]!r}"
        pytest.fail(f"{shown}\n\nif the new text is right, run with REWRITE=1", pytrace=False)


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    """golden("plan/union.txt", text) compares text with tests/golden/plan/union.txt."""
    return compare_with_golden


@pytest.fixture
def headgate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """headgate("show", "feeds") runs the command in an empty folder."""
    return command_runner(tmp_path, monkeypatch, capsys)
