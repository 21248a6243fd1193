"""schemathesis calls every operation of the API with what its description allows, and with what it
does not: no answer is a 5xx, and each is as described."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance
from tests.service.test_api import PATIENCE_S, SCRIPT, Home, serving

from headgate.catalog.principals import Scope
from headgate.language.parse import parse_script
from headgate.service import rate_limits

EXAMPLES = 15
NOT_CHECKED = [positive_data_acceptance, negative_data_rejection]
"""A script of the right length may be wrong, and parameters that are not known are ignored."""
pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    home = Home(Path(tmp_path_factory.mktemp("service")))
    home.make_log()
    with pytest.MonkeyPatch.context() as patch, serving(home.headgate) as home.url:
        patch.setattr(rate_limits, "WRONG_AT_ONCE", 1e9)  # each operation is tried without a token
        yield home
    home.catalog.close()


@pytest.mark.parametrize("mode", list(GenerationMode))
def test_every_operation_answers_as_described(home: Home, mode: GenerationMode) -> None:
    headers = {"authorization": f"Bearer {home.token('acme')}"}
    whole = schemathesis.openapi.from_url(f"{home.url}/v1/openapi.json", headers=headers)
    schema = whole.exclude(path_regex="/live$")  # its answer has no end
    called: set[str] = set()
    for result in schema.get_all_operations():
        operation = result.ok()

        @given(case=operation.as_strategy(generation_mode=mode))
        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def call(case: schemathesis.Case) -> None:
            response = case.call(headers=headers, timeout=PATIENCE_S)
            case.validate_response(response, headers=headers, excluded_checks=NOT_CHECKED)

        try:
            call()
        except Unsatisfiable:
            assert mode.is_negative, "it has no parameter that could be wrong"
            continue
        called.add(operation.label)
    assert len(called) >= 15
    principal = home.catalog.principal_of_token(headers["authorization"].removeprefix("Bearer "))
    assert principal is not None
    acts = home.catalog.acting_as(principal)
    assert acts.apply(parse_script(SCRIPT))  # it still works
    assert Scope.READ in principal.scopes


def test_every_reference_of_the_description_is_there(home: Home) -> None:
    """A generator of clients leaves out what it cannot resolve."""
    document = httpx.get(f"{home.url}/v1/openapi.json").json()
    found = list(references(document))
    assert len(found) > 100
    for each in found:
        part = document
        for name in each.removeprefix("#/").split("/"):
            part = part[name]
        assert part, each
    posting = document["paths"]["/v1/sources/{name}/items"]["post"]["requestBody"]["content"]
    assert "application/json" in posting


def references(part: object) -> Iterator[str]:
    if isinstance(part, dict):
        for name, value in part.items():
            if name == "$ref":
                yield str(value)
            else:
                yield from references(value)
    elif isinstance(part, list):
        for value in part:
            yield from references(value)
