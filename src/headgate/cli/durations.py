"""Durations on the command line: '3 hours', '1 day'."""

from __future__ import annotations

import typer

from headgate.language import parse
from headgate.language.statements import Renew
from headgate.model.duration import Duration
from headgate.model.errors import LanguageError


def duration_option(text: str, option: str) -> Duration | None:
    """The duration, read as the language reads it; nothing where there is none."""
    if not text:
        return None
    try:
        renewal = parse(f"renew '' for {text}")
    except LanguageError as error:
        raise typer.BadParameter(error.message, param_hint=option) from None
    assert isinstance(renewal, Renew)
    return renewal.validity
