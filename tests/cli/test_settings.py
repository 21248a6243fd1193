"""The settings file: what holds, where it comes from, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from tests.cli.headgate_command import Run

from headgate.cli.main import make_app
from headgate.cli.settings import COMMANDS, COMMON_OPTIONS, option_names

FILE = """
[common]
catalog = "postgresql://me:hidden@db/headgate"
folder = "common-data"

[run]
interval = "10 minutes"
budget = 7
kafka = ["sasl.password=hidden"]
operator-network = true

[serve]
folder = "serve-data"
oidc-issuer = "https://login.example"
oidc-secret = "hidden"
"""


def in_force(headgate: Run, *arguments: str) -> dict[tuple[str, str], tuple[object, str]]:
    code, out, err = headgate(*arguments, "settings", "--json")
    assert (code, err) == (0, "")
    assert "hidden" not in out
    rows = json.loads(out)["settings"]
    return {(x["command"], x["option"]): (x["value"], x["origin"]) for x in rows}


def test_the_order_of_what_holds(headgate: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADGATE_FOLDER", raising=False)
    Path("gate.toml").write_text(FILE)
    found = in_force(headgate, "--settings", "gate.toml")
    assert found["run", "catalog"] == ("postgresql://me:…@db/headgate", "gate.toml")
    assert found["run", "folder"] == ("common-data", "gate.toml")
    assert found["serve", "folder"] == ("serve-data", "gate.toml")
    assert found["serve", "oidc-issuer"] == ("https://login.example", "gate.toml")
    assert found["serve", "oidc-secret"] == ("…", "gate.toml")
    assert found["run", "interval"] == ("10 minutes", "gate.toml")
    assert found["run", "budget"] == (7, "gate.toml")
    assert found["run", "kafka"] == (["sasl.password=…"], "gate.toml")
    assert found["run", "operator-network"] == (True, "gate.toml")
    assert found["run", "lateness"] == ("1 minute", "default")
    monkeypatch.setenv("HEADGATE_FOLDER", "from-environment")
    monkeypatch.setenv("HEADGATE_SETTINGS", "gate.toml")
    found = in_force(headgate)
    assert found["serve", "folder"] == ("from-environment", "environment HEADGATE_FOLDER")


def test_a_file_of_the_folder_holds_for_all_commands(headgate: Run) -> None:
    assert headgate("show", "--catalog", "other.db")[0] == 0
    Path("headgate.toml").write_text("[common]\ncatalog = 'missing/headgate.db'\n")
    assert "there is no catalog 'missing/headgate.db'" in headgate("status")[2]
    assert "there is no folder" in headgate("status", "--catalog", "other.db")[2], (
        "the command line"
    )
    assert in_force(headgate)["run", "catalog"][1] == "headgate.toml"
    text = headgate("settings", "serve")[1]
    assert text.startswith("-- settings file: headgate.toml")
    assert "--address" in text
    assert "--budget" not in text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[run]\nintervall = '1 minute'\n", "did you mean 'interval'?"),
        ("[runn]\nbudget = 1\n", "did you mean 'run'?"),
        ("[common]\ncatalogue = 'x'\n", "did you mean 'catalog'?"),
        ("[common]\nbudget = 1\n", "[common] has no setting 'budget'"),
        ("budget = 1\n", "has no table 'budget'"),
        ("[run]\nbudget = [\n", "is no TOML"),
    ],
)
def test_what_is_refused(headgate: Run, text: str, said: str) -> None:
    Path("headgate.toml").write_text(text)
    code, _, err = headgate("settings")
    assert code == 2
    assert said in " ".join(err.replace("│", " ").split())


def test_a_wrong_value_is_refused_by_the_command(headgate: Run) -> None:
    Path("headgate.toml").write_text("[run]\nbudget = 'many'\n")
    code, _, err = headgate("run")
    assert code == 2
    assert "--budget" in err
    code, _, err = headgate("--settings", "nowhere.toml", "settings")
    assert code == 2
    assert "nowhere.toml" in err


def test_common_settings_are_the_options_with_a_variable() -> None:
    group = typer.main.get_command(make_app(COMMANDS))
    options = [
        (name, option)
        for command in COMMANDS
        for name, option in option_names(group.commands[command])  # type: ignore[attr-defined]
    ]
    assert {name for name, option in options if option.envvar} == set(COMMON_OPTIONS)
