"""Reading scripts from files, with every error in them and with progress on long ones."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from headgate.cli.output import error_json as as_data
from headgate.cli.output import print_error, print_json, report_error, stderr
from headgate.language import read_script
from headgate.language.statements import Statement
from headgate.model.errors import LanguageError

ERRORS_SHOWN_MAX = 20
STATUS_EVERY = 1_000


def read_text(file: Path) -> str:
    """The text of a script; a file that cannot be read is a wrong call."""
    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        return data.decode("utf-8-sig")
    except OSError as error:
        reason = error.strerror or str(error)
    except UnicodeDecodeError as error:
        reason = f"byte {error.start:,} is not UTF-8"
    print_error(f"{file} cannot be read: {reason}")
    raise typer.Exit(2)


def read_statements(text: str, *, file: Path, as_json: bool) -> list[Statement]:
    """All statements of a script, or every error in it and exit code 1."""
    statements: list[Statement] = []
    errors: list[LanguageError] = []
    with stderr.status("reading the script …") as status:
        for number, result in enumerate(read_script(text), start=1):
            if isinstance(result, LanguageError):
                errors.append(result)
            else:
                statements.append(result)
            if number % STATUS_EVERY == 0:
                status.update(f"reading the script … {number:,} statements")
    if errors:
        _report(errors, file=file, as_json=as_json)
        raise typer.Exit(1)
    return statements


def _report(errors: list[LanguageError], *, file: Path, as_json: bool) -> None:
    if as_json:
        print_json({"errors": [as_data(error, file=str(file)) for error in errors]})
        return
    for error in errors[:ERRORS_SHOWN_MAX]:
        report_error(error, as_json=False, file=str(file))
    if len(errors) > ERRORS_SHOWN_MAX:
        print_error(f"… and {len(errors) - ERRORS_SHOWN_MAX:,} more errors in {file}")
