"""The settings file: options of `run`, `serve` and `deliver` in TOML. `headgate settings` shows
what holds, and where it comes from.

    [common]                       # options that have a variable; for all commands that have them
    catalog = "postgresql://headgate@db/headgate"

    [run]
    interval = "10 minutes"
    kafka = ["security.protocol=SASL_SSL"]

    command line  >  environment  >  table of the command  >  [common]  >  default

Keys are the long names of options. A key that is not known is refused: one that is ignored would
be believed. The values become the defaults of click's context, so they are checked like arguments.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from headgate.cli.options import AsJson
from headgate.cli.output import print_json, print_line, print_table
from headgate.model.errors import did_you_mean, printable

FILE_DEFAULT = Path("headgate.toml")
FILE_VARIABLE = "HEADGATE_SETTINGS"
FILE_BYTES_MAX = 1_000_000
COMMANDS = ("run", "serve", "deliver")
COMMON = "common"
COMMON_OPTIONS = (
    "catalog",
    "folder",
    "log",
    "state",
    "public-url",
    "log-format",
    "operators",
    "host",
    "allow",
    "oidc-issuer",
    "oidc-client",
    "oidc-secret",
    "oidc-domains",
    "certificate",
    "certificate-key",
)
_PASSWORD = re.compile(r"(://[^:/@\s]*):[^@\s]*@")
_HINT = "--settings"


@dataclass(frozen=True, slots=True)
class SettingsFile:
    path: Path | None
    """None: there is none."""
    tables: Mapping[str, Mapping[str, object]]

    def defaults(self, command: str, known: TyperCommand) -> dict[str, object]:
        """The defaults of a command's parameters, by their names in the program."""
        parameters = dict(option_names(known))
        shared = {
            name: value
            for name, value in self.tables.get(COMMON, {}).items()
            if name in parameters and parameters[name].envvar
        }
        own = self.tables.get(command, {})
        if unknown := [name for name in own if name not in parameters]:
            raise self.unknown(unknown[0], command, parameters)
        return {str(parameters[name].name): value for name, value in {**shared, **own}.items()}

    def unknown(self, name: str, table: str, known: Mapping[str, object]) -> typer.BadParameter:
        hint = did_you_mean(name, known)
        what = f"'{self.path}': [{table}] has no setting '{printable(name)}'"
        return typer.BadParameter(what + (f"; {hint}" if hint else ""), param_hint=_HINT)


def option_names(command: TyperCommand) -> Iterator[tuple[str, TyperOption]]:
    """The options of a command by their first long name, without the dashes."""
    for each in command.params:
        long_names = [name for name in each.opts if name.startswith("--")]
        if not isinstance(each, TyperOption) or each.is_eager or each.hidden:
            continue
        if long_names:
            yield long_names[0].removeprefix("--"), each


def read_settings(given: Path | None) -> SettingsFile:
    """The file that is named, or headgate.toml if it is there."""
    path = given or FILE_DEFAULT
    if given is None and not path.is_file():
        return SettingsFile(None, {})
    try:
        with path.open("rb") as file:
            text = file.read(FILE_BYTES_MAX + 1).decode()
        if len(text) > FILE_BYTES_MAX:
            raise ValueError(f"it has more than {FILE_BYTES_MAX:,} bytes")
        tables = tomllib.loads(text)
    except OSError as error:
        why = error.strerror or str(error)
        raise typer.BadParameter(f"'{path}' cannot be read: {why}", param_hint=_HINT) from None
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"'{path}' is no TOML: {error}", param_hint=_HINT) from None
    found = SettingsFile(path, tables)
    known = dict.fromkeys((COMMON, *COMMANDS))
    for name, table in tables.items():
        if name not in known or not isinstance(table, dict):
            hint = did_you_mean(name, known) or f"there are {', '.join(known)}"
            what = f"'{path}' has no table '{printable(name)}'; {hint}"
            raise typer.BadParameter(what, param_hint=_HINT)
    for name in tables.get(COMMON, {}):
        if name not in COMMON_OPTIONS:
            raise found.unknown(name, COMMON, dict.fromkeys(COMMON_OPTIONS))
    return found


def apply_settings(context: typer.Context, given: Path | None) -> None:
    """Make what the file says the defaults of the commands."""
    assert isinstance(context.command, TyperGroup)
    found = read_settings(given)
    context.obj = found
    context.default_map = {
        name: found.defaults(name, command)
        for name, command in context.command.commands.items()
        if isinstance(command, TyperCommand)
    }


def settings_path(context: typer.Context) -> Path | None:
    """The settings file of this call, for children of it; None: there is none."""
    found = context.find_root().obj
    return found.path if isinstance(found, SettingsFile) else None


# --- headgate settings ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SettingInForce:
    command: str
    option: str
    value: object
    origin: str


def settings(
    context: typer.Context,
    command: Annotated[str, typer.Argument(help="run, serve or deliver; all by default.")] = "",
    json: AsJson = False,
) -> None:
    """Show the settings of run, serve and deliver, and where each comes from.

    The order is: command line, environment, settings file, default. Passwords are not shown.

    [bold]headgate --settings gate.toml settings run[/bold]
    """
    if command and command not in COMMANDS:
        raise typer.BadParameter(f"expected {', '.join(COMMANDS)}", param_hint="COMMAND")
    found: SettingsFile = context.obj
    in_force = list(_in_force(found, (command,) if command else COMMANDS))
    if json:
        rows = [
            {"command": x.command, "option": x.option, "value": x.value, "origin": x.origin}
            for x in in_force
        ]
        print_json({"file": None if found.path is None else str(found.path), "settings": rows})
        return
    print_line(f"-- settings file: {found.path or 'none'}")
    cells = [[x.command, f"--{x.option}", _shown(x.value), x.origin] for x in in_force]
    print_table(["command", "option", "value", "from"], cells)


def _in_force(found: SettingsFile, names: tuple[str, ...]) -> Iterator[SettingInForce]:
    from headgate.cli.main import make_app  # noqa: PLC0415 - it imports this module

    group = typer.main.get_command(make_app(names))
    assert isinstance(group, TyperGroup)
    for name in names:
        command = group.commands[name]
        assert isinstance(command, TyperCommand)
        defaults = found.defaults(name, command)
        context = command.make_context(name, [], default_map=defaults, resilient_parsing=True)
        for option, parameter in option_names(command):
            assert parameter.name is not None
            source = getattr(context.get_parameter_source(parameter.name), "name", "")
            value = _without_secrets(option, context.params[parameter.name])
            yield SettingInForce(name, option, value, _origin(source, parameter, found))


def _origin(source: str, option: TyperOption, found: SettingsFile) -> str:
    if source == "ENVIRONMENT":
        return f"environment {option.envvar}"
    return str(found.path) if source == "DEFAULT_MAP" else "default"


def _without_secrets(option: str, value: Any) -> object:
    """
    >>> _without_secrets("catalog", "postgresql://me:secret@db/headgate")
    'postgresql://me:…@db/headgate'
    >>> _without_secrets("kafka", ("sasl.password=secret",))
    ['sasl.password=…']
    >>> _without_secrets("oidc-secret", "secret")
    '…'
    """
    if isinstance(value, list | tuple):
        return [_without_secrets(option, each) for each in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    if option.endswith("-secret"):
        return "…" if value else ""
    text = _PASSWORD.sub(r"\1:…@", str(value))
    return f"{text.partition('=')[0]}=…" if option == "kafka" else text


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)
