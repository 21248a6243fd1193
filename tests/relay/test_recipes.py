"""What relays compute is what views hold, from tuples or from bytes; failures are handed on."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.relay.relay_networks import BOTH, TOPIC, VIEWS, document, news_network
from tests.views.evaluate_naive import evaluate_naive
from tests.views.strategies import documents, families

from headgate.model.errors import InvalidValue, RelayError
from headgate.model.tree_pattern import PatternNode
from headgate.relay.deployment import Address, Deployment, RelayView
from headgate.relay.recipes import Recipes, TupleResult
from headgate.relay.tuple_frames import encode_failure
from headgate.views.document import Document
from headgate.views.equivalent_views import find_rewritings
from headgate.views.run_levels import PatternSet

ADDRESSES = {"source": Address("127.0.0.1", 1), "A": Address("127.0.0.1", 2)}


def deployed(patterns: list[PatternNode], which: list[int]) -> Deployment:
    """All views at A, each from views that are fed already, if there is such a rewriting."""
    found = find_rewritings(patterns)
    reads: dict[int, tuple[int, ...]] = {}
    for number, chance in enumerate(which[: len(patterns)]):
        ways = [
            tuple(found.members[found.member_start[r] : found.member_start[r + 1]].tolist())
            for r in range(found.view_start[number], found.view_start[number + 1])
        ]
        fed = [way for way in ways if all(each in reads for each in way)]
        reads[number] = fed[chance % len(fed)] if fed else ()
    views = [RelayView(f"v{n}", "A", patterns[n], own) for n, own in reads.items()]
    return Deployment("test", "source", ADDRESSES, tuple(views))


# Each example makes and compiles some twenty plans.
@settings(max_examples=min(40, settings().max_examples))
@given(families(), documents, st.lists(st.integers(0, 9), min_size=20), st.booleans())
def test_what_is_computed_is_what_views_hold(
    patterns: list[PatternNode], text: str, which: list[int], as_bytes: bool
) -> None:
    deployment = deployed(patterns[:20], which)
    source, site = Recipes(deployment, "source"), Recipes(deployment, "A")
    read = Document.read(text)
    assert read is not None
    held: dict[int, TupleResult] = {
        view: site.received("source", view, 7, result.content) if as_bytes else result
        for view, result in source.evaluate(text).items()
    }
    for number, view in enumerate(deployment.views):
        if view.reads:
            inputs = {member: held[member] for member in view.reads}
            held[number] = site.compute(number, 7, inputs)
        assert held[number].tuples.rows() == evaluate_naive(view.pattern, read).rows()
    assert source.failures == site.failures == 0


def test_a_twin_is_taken_for_its_own_document_only() -> None:
    deployment = Deployment(
        "test",
        "source",
        ADDRESSES,
        (
            RelayView("Topics", "A", TOPIC),
            RelayView("Headlines", "A", VIEWS[1].pattern),
            RelayView("Both", "A", BOTH, (0, 1)),
            RelayView("Twin", "A", BOTH, (0, 1)),
        ),
    )
    source, site = Recipes(deployment, "source"), Recipes(deployment, "A")
    first = source.evaluate(document(3))
    both = site.compute(2, 0, first)
    assert site.compute(3, 0, first) is both
    assert site.copied == 1
    second = source.evaluate(document(2))
    assert len(site.compute(3, 1, second).tuples) == 2
    assert site.copied == 1


def test_a_failure_is_a_result_and_so_is_what_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    deployment = news_network()
    source, rome = Recipes(deployment, "source"), Recipes(deployment, "Rome")
    broken = source.evaluate("<news>")
    assert broken[0].failure == "no well-formed XML"
    found = rome.compute(2, 0, broken)
    assert found.failure == "Topics at Paris: no well-formed XML"
    assert rome.received("Paris", 0, 0, found.content).failure == found.failure

    whole = PatternSet.evaluate

    def too_many(self: PatternSet, document: Document) -> object:
        if TOPIC in self.patterns:
            raise InvalidValue("too many embeddings")
        return whole(self, document)

    monkeypatch.setattr(PatternSet, "evaluate", too_many)
    results = source.evaluate(document(2))
    assert results[0].failure == "too many embeddings"
    assert len(results[1].tuples) == 2  # the others do not suffer for it


def test_what_a_supplier_must_not_send() -> None:
    rome = Recipes(news_network(), "Rome")
    with pytest.raises(RelayError, match="Paris sends view 99, which is not known here"):
        rome.received("Paris", 99, 0, b"")
    with pytest.raises(RelayError, match="a result of 3 bytes"):
        rome.received("Paris", 0, 0, b"abc")
    bad = rome.received("Paris", 0, 0, b"\0" + b"\xff" * 20)
    good = rome.received("source", 1, 0, encode_failure("x"))
    found = rome.compute(2, 0, {0: bad, 1: good})
    assert found.failure == "Headlines at Rome: x"
    found = rome.compute(2, 1, {0: bad, 1: bad})
    assert found.failure is not None
    assert "a result ends at byte" in found.failure
