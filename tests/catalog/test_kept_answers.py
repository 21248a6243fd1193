"""Answers by idempotency key: nothing is done twice, whatever is cut off in between."""

from __future__ import annotations

import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from sqlalchemy import text
from tests.catalog.conftest import ManualClock
from tests.catalog.test_tenants import acting, execute

from headgate.catalog import kept_answers
from headgate.catalog.catalog import Catalog
from headgate.catalog.kept_answers import RUNNING, VALIDITY, KeyedRequest, KeyState
from headgate.catalog.principals import Principal
from headgate.catalog.tenant_catalog import TenantCatalog
from headgate.model.errors import InUse, QuotaExceeded, UnknownName

SCRIPT = "register stream S from post (n int);"
ACME, OTHER_TOKEN = Principal("acme", "token 1", frozenset()), Principal("acme", "t 2", frozenset())
GLOBEX = Principal("globex", "token 1", frozenset())


@pytest.fixture
def acme(catalog: Catalog) -> TenantCatalog:
    for tenant in ("acme", "globex"):
        catalog.add_tenant(tenant)
        execute(acting(catalog, tenant), SCRIPT)
    return acting(catalog, "acme")


def begin(catalog: Catalog, key: str = "k", request: str = "r") -> KeyedRequest:
    return catalog.kept_answers.begin(ACME, key, request)


def test_the_answer_is_the_same_for_a_day(
    catalog: Catalog, acme: TenantCatalog, clock: ManualClock
) -> None:
    begun = begin(catalog)
    assert begun.state is KeyState.NEW
    assert begin(catalog).state is KeyState.RUNNING
    with catalog.kept_answers.applying(begun):
        acme.create_link("S")
    catalog.kept_answers.keep(begun, b"answer")
    found = begin(catalog)
    assert (found.state, found.answer) == (KeyState.ANSWERED, b"answer")
    assert begin(catalog, request="another").state is KeyState.OTHER
    for who in (OTHER_TOKEN, GLOBEX):
        assert catalog.kept_answers.begin(who, "k", "r").state is KeyState.NEW
    clock.advance(seconds=VALIDITY.total_seconds())
    assert begin(catalog, request="another").state is KeyState.NEW


def test_a_crash_before_the_change_leaves_nothing_and_after_it_a_mark(
    catalog: Catalog, acme: TenantCatalog, clock: ManualClock
) -> None:
    begin(catalog, "before")
    cut_off = begin(catalog, "after")
    with catalog.kept_answers.applying(cut_off):
        acme.create_link("S")
    clock.advance(seconds=RUNNING.total_seconds() - 1)
    assert {begin(catalog, key).state for key in ("before", "after")} == {KeyState.RUNNING}
    clock.advance(seconds=1)
    assert begin(catalog, "before").state is KeyState.NEW
    assert begin(catalog, "after").state is KeyState.LOST


def test_who_was_taken_for_dead_changes_nothing(
    catalog: Catalog, acme: TenantCatalog, clock: ManualClock
) -> None:
    slow = begin(catalog)
    clock.advance(seconds=RUNNING.total_seconds())
    quick = begin(catalog)
    assert quick.state is KeyState.NEW
    with catalog.kept_answers.applying(slow), pytest.raises(InUse, match="took too long"):
        acme.create_link("S")
    assert acme.count_links() == 0
    with catalog.kept_answers.applying(quick):
        acme.create_link("S")
    catalog.kept_answers.keep(slow, b"not this one")
    catalog.kept_answers.forget(slow)
    catalog.kept_answers.keep(quick, b"this one")
    assert begin(catalog).answer == b"this one"
    assert acme.count_links() == 1


def test_what_was_refused_may_be_sent_again(catalog: Catalog, acme: TenantCatalog) -> None:
    begun = begin(catalog)
    with catalog.kept_answers.applying(begun), pytest.raises(UnknownName):
        acme.create_link("Nothing")
    catalog.kept_answers.forget(begun)
    assert begin(catalog, request="mended").state is KeyState.NEW


def test_a_request_that_failed_after_a_change_is_not_made_again(
    catalog: Catalog, acme: TenantCatalog
) -> None:
    begun = begin(catalog)
    with catalog.kept_answers.applying(begun):
        acme.create_link("S")
    catalog.kept_answers.forget(begun)
    assert begin(catalog).state is KeyState.LOST


def test_a_dry_run_and_other_contexts_mark_nothing(
    catalog: Catalog, acme: TenantCatalog, clock: ManualClock
) -> None:
    begun = begin(catalog)
    with catalog.kept_answers.applying(begun):
        acme.apply([], dry_run=True)
        token = acting(catalog, "globex")
        assert token.count_links() == 0
    acme.create_link("S")
    clock.advance(seconds=RUNNING.total_seconds())
    assert begin(catalog).state is KeyState.NEW


def test_keys_and_bytes_of_a_tenant_are_bounded(
    catalog: Catalog,
    acme: TenantCatalog,  # noqa: ARG001
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kept_answers, "KEYS_MAX", 3)
    monkeypatch.setattr(kept_answers, "KEPT_BYTES_MAX", 1_000)
    monkeypatch.setattr(kept_answers, "ANSWER_BYTES_MAX", 700)
    for key, size in (("a", 600), ("b", 600), ("c", 701)):
        catalog.kept_answers.keep(begin(catalog, key), b"x" * size)
    assert begin(catalog, "a").answer == b"x" * 600
    assert begin(catalog, "b").state is KeyState.LOST, "there is no room for its answer"
    assert begin(catalog, "c").state is KeyState.LOST, "it is too large"
    with pytest.raises(QuotaExceeded, match="3 idempotency keys"):
        begin(catalog, "d")
    assert catalog.kept_answers.begin(GLOBEX, "d", "r").state is KeyState.NEW
    clock.advance(days=1)
    assert begin(catalog, "d").state is KeyState.NEW
    with catalog._database.reading() as connection:
        count = connection.scalar(text("SELECT count(*) FROM answers WHERE tenant = 'acme'"))
    assert count == 1, "what has expired is removed"


def test_neither_keys_nor_answers_can_be_read_from_the_table(
    catalog: Catalog,
    acme: TenantCatalog,  # noqa: ARG001
) -> None:
    for key in ("the-key", "another-key"):
        catalog.kept_answers.keep(begin(catalog, key), f"the-secret of {key}".encode())
    with catalog._database.writing() as connection:
        rows = connection.execute(text("SELECT * FROM answers")).all()
        for each in (value for row in rows for value in row):
            shown = bytes(each) if isinstance(each, bytes | memoryview) else str(each).encode()
            assert b"the-" not in shown
        connection.execute(
            text(
                "UPDATE answers SET answer = (SELECT x.answer FROM answers x ORDER BY key LIMIT 1)"
            )
        )
    states = {begin(catalog, key).state for key in ("the-key", "another-key")}
    assert states == {KeyState.ANSWERED, KeyState.LOST}, "a moved answer does not open"


KILLED = """
import os, signal, sys
from headgate.catalog.catalog import Catalog
from headgate.catalog.principals import Principal, Scope
url, where = sys.argv[1:]
catalog = Catalog.open(url)
acme = Principal("acme", "token 1", frozenset(Scope))
begun = catalog.kept_answers.begin(acme, "k", "r")
assert begun.state == "new"
def killed(*given, **more):
    os.kill(os.getpid(), signal.SIGKILL)
acting = catalog.acting_as(acme)
if where == "before the commit":
    acting._record = killed  # the last step of the transaction
with catalog.kept_answers.applying(begun):
    acting.create_link("S")
killed()
"""


@pytest.mark.integration
@pytest.mark.parametrize(
    ("where", "links", "state"),
    [("before the commit", 0, KeyState.NEW), ("before the answer", 1, KeyState.LOST)],
)
def test_a_process_is_killed(catalog_url: str, where: str, links: int, state: KeyState) -> None:
    with Catalog.open(catalog_url) as catalog:
        catalog.add_tenant("acme")
        execute(acting(catalog, "acme"), SCRIPT)
    command = [sys.executable, "-c", KILLED, catalog_url, where]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    later = datetime.now(UTC) + RUNNING
    with Catalog.open(catalog_url, clock=lambda: later) as catalog:
        assert acting(catalog, "acme").count_links() == links
        assert begin(catalog).state is state


# --- against a model ------------------------------------------------------------------------------


class KeyHistory(RuleBasedStateMachine):
    """Requests that make a link, cut off anywhere: a key makes at most one, and one that was
    answered exactly one."""

    def __init__(self) -> None:
        super().__init__()
        self.now = datetime(2026, 11, 18, tzinfo=UTC)
        self.catalog = Catalog.open("sqlite://", clock=lambda: self.now)
        self.catalog.add_tenant("acme")
        self.acme = acting(self.catalog, "acme")
        execute(self.acme, SCRIPT)
        self.made: dict[str, int] = {}
        self.answered: dict[str, bytes] = {}
        self.under_way: list[tuple[str, KeyedRequest]] = []

    def teardown(self) -> None:
        self.catalog.close()

    @rule(key=st.sampled_from("ab"))
    def begin(self, key: str) -> None:
        found = self.catalog.kept_answers.begin(ACME, key, "r")
        if key in self.answered:
            assert (found.state, found.answer) == (KeyState.ANSWERED, self.answered[key])
        if found.state is KeyState.NEW:
            assert not self.made.get(key)
            self.under_way.append((key, found))
        if found.state is KeyState.LOST:
            assert self.made[key] == 1

    @rule(data=st.data(), ends=st.sampled_from(["crash", "fail", "answer"]))
    def go_on(self, data: st.DataObject, ends: str) -> None:
        if not self.under_way:
            return
        place = data.draw(st.integers(0, len(self.under_way) - 1))
        key, request = self.under_way.pop(place)
        answer = f"answer {self.now}".encode()
        try:
            with self.catalog.kept_answers.applying(request):
                self.acme.create_link("S", comment=key)
        except InUse:
            self.catalog.kept_answers.forget(request)
            return
        self.made[key] = self.made.get(key, 0) + 1
        if ends == "answer":
            self.catalog.kept_answers.keep(request, answer)
            self.answered[key] = answer
        elif ends == "fail":
            self.catalog.kept_answers.forget(request)

    @rule(seconds=st.sampled_from([1, 30, 61]))
    def pass_time(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    @invariant()
    def each_key_makes_one_link(self) -> None:
        made = [each.comment for each in self.acme.list_links()]
        assert {key: made.count(key) for key in set(made)} == self.made
        assert all(count == 1 for count in self.made.values())


TestKeyHistory = KeyHistory.TestCase
TestKeyHistory.settings = settings(deadline=None, max_examples=40, stateful_step_count=25)
