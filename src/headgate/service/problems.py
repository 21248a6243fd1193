"""Errors as problem documents (RFC 9457), the same for all of `/v1`.

    {"type": "urn:headgate:problem:language-error", "title": "A statement is wrong", "status": 422,
     "detail": "there is no source or feed 'Nwes'",
     "errors": [{"message": …, "line": 1, "column": 20, "hint": "did you mean 'News'?", …}]}

The type names the class of the error (model/errors.py), and stays the same. What is not one of our
errors is a bug: it is logged, and the answer says nothing about it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from headgate.model.errors import (
    BadTicket,
    CatalogError,
    CatalogUnavailable,
    FeedCycle,
    HeadgateError,
    InUse,
    InvalidValue,
    LanguageError,
    LogUnavailable,
    NameTaken,
    NotAllowed,
    PlanError,
    QuotaExceeded,
    StateError,
    UnknownName,
)

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = 5
_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")


class StatementError(BaseModel):
    """One error of a script, with its place."""

    message: str
    kind: str = Field(description="The class of the error.")
    line: int | None = None
    column: int | None = None
    source: str | None = Field(default=None, description="The line of the script.")
    hint: str | None = None
    statement: int | None = Field(default=None, description="Which statement of the script.")


class ProblemDocument(BaseModel):
    """What is wrong with a request (RFC 9457)."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str = ""
    errors: list[StatementError] | None = None


_STATUSES: Sequence[tuple[type[HeadgateError], HTTPStatus, str]] = (
    (LanguageError, HTTPStatus.UNPROCESSABLE_ENTITY, "A statement is wrong"),
    (PlanError, HTTPStatus.UNPROCESSABLE_ENTITY, "A feed cannot be planned"),
    (InvalidValue, HTTPStatus.UNPROCESSABLE_ENTITY, "A value is wrong"),
    (UnknownName, HTTPStatus.NOT_FOUND, "There is no such thing"),
    (BadTicket, HTTPStatus.NOT_FOUND, "There is no such subscription"),
    (NotAllowed, HTTPStatus.FORBIDDEN, "Not allowed"),
    (QuotaExceeded, HTTPStatus.FORBIDDEN, "A quota is exceeded"),
    (NameTaken, HTTPStatus.CONFLICT, "The name is taken"),
    (InUse, HTTPStatus.CONFLICT, "It is in use"),
    (FeedCycle, HTTPStatus.UNPROCESSABLE_ENTITY, "A feed is defined through itself"),
    (CatalogUnavailable, HTTPStatus.SERVICE_UNAVAILABLE, "Not now"),
    (LogUnavailable, HTTPStatus.SERVICE_UNAVAILABLE, "Not now"),
    (StateError, HTTPStatus.SERVICE_UNAVAILABLE, "Not now"),
    (CatalogError, HTTPStatus.CONFLICT, "Refused"),
)
RESPONSES: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "What is wrong with the request.",
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}},
    }
}
"""For the description of every resource; `describe_problems` adds what it refers to."""


def describe_problems(app: FastAPI) -> None:
    """Add the problem document to the description of the API."""
    made = app.openapi
    schema = ProblemDocument.model_json_schema(ref_template="#/components/schemas/{model}")
    parts = schema.pop("$defs")

    def described() -> dict[str, Any]:
        document = made()
        schemas: dict[str, Any] = document.setdefault("components", {}).setdefault("schemas", {})
        schemas |= {"ProblemDocument": schema, **parts}
        return document

    app.openapi = described  # type: ignore[method-assign]


def problem_of(error: HeadgateError, text: str = "") -> JSONResponse:
    """The answer to a request that ended with this error; `text` is the script that it is about."""
    status, title = next(
        ((status, title) for kind, status, title in _STATUSES if isinstance(error, kind)),
        (HTTPStatus.BAD_REQUEST, "Not possible"),
    )
    is_ours = status is HTTPStatus.SERVICE_UNAVAILABLE
    problem = ProblemDocument(
        type=f"urn:headgate:problem:{_CAPITAL.sub('-', type(error).__name__).lower()}",
        title=title,
        status=status,
        # Why a database cannot be reached is the operator's to know.
        detail="" if is_ours else getattr(error, "message", "") or str(error),
    )
    if isinstance(error, LanguageError) or error.statement_number is not None:
        problem.errors = [statement_error(error, text)]
    return answer(problem, {"retry-after": str(RETRY_AFTER_S)} if is_ours else {})


def problem(status: int, detail: str = "", headers: Mapping[str, str] = {}) -> JSONResponse:
    return answer(
        ProblemDocument(title=HTTPStatus(status).phrase, status=status, detail=detail), headers
    )


def answer(problem: ProblemDocument, headers: Mapping[str, str] = {}) -> JSONResponse:
    return JSONResponse(
        problem.model_dump(exclude_none=True),
        status_code=problem.status,
        headers=dict(headers),
        media_type=MEDIA_TYPE,
    )


def statement_error(error: HeadgateError, text: str = "") -> StatementError:
    found = StatementError(
        message=str(error), kind=type(error).__name__, statement=error.statement_number
    )
    if isinstance(error, LanguageError):
        if text:
            error.within(text)
        found.message, found.line, found.column = error.message, error.line, error.column
        found.source, found.hint = error.source or None, error.hint or None
    return found
