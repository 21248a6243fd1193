"""Tenants have names of their own, see what is theirs or granted, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headgate.catalog.catalog import Catalog
from headgate.catalog.limits import Resource
from headgate.catalog.principals import Principal, Scope
from headgate.catalog.tenant_catalog import TenantCatalog
from headgate.catalog.tenants import EVERYTHING, Right, TenantView, owner_of
from headgate.language.parse import parse, parse_script
from headgate.language.rename import rename_definitions
from headgate.language.unparse import unparse
from headgate.model.errors import (
    BadTicket,
    CatalogError,
    HeadgateError,
    InUse,
    InvalidValue,
    LanguageError,
    NameTaken,
    NotAllowed,
    QuotaExceeded,
    UnknownName,
)


def acting(catalog: Catalog, tenant: str, *scopes: Scope) -> TenantCatalog:
    return catalog.acting_as(Principal(tenant, f"{tenant}'s", frozenset(scopes or Scope)))


@pytest.fixture
def catalog() -> Iterator[Catalog]:
    with Catalog.open("sqlite://") as opened:
        opened.add_tenant("acme")
        opened.add_tenant("globex")
        yield opened


def names(catalog: TenantCatalog) -> list[str]:
    listed = [each.name for each in catalog.list_definitions(limit=1_000)]
    assert sorted(listed) == list(catalog.definitions())
    with catalog.looking_up() as definitions:
        assert list(definitions) == sorted(listed)
    assert catalog.count_definitions() == len(listed)
    return sorted(listed)


def execute(catalog: TenantCatalog, script: str) -> list[str]:
    return [outcome.action for outcome in catalog.apply(parse_script(script))]


# --- names ----------------------------------------------------------------------------------------

tenant_names = st.sampled_from(["local", "acme", "globex"])
plain_names = st.sampled_from(["A", "News", "first name", "From"])


@given(tenant_names, tenant_names, plain_names)
def test_a_name_that_is_shown_is_kept_as_it_was(reader: str, owner: str, name: str) -> None:
    kept = name if owner == "local" else f"{owner}.{name}"
    view = TenantView(reader)
    assert view.kept(view.shown(kept)) == kept
    assert view.owns(kept) == (reader == owner)
    assert owner_of(kept) == owner
    assert view.kept(f"{owner}.{name}") == kept
    assert ("." in view.shown(kept)) == (reader != owner)


STATEMENTS = """
create feed A from (B as $b | C | d1 | ... | d3) join last 3 items on E with $b[t = window.t]
  where $b[near('x') or n > 3 and not local.far(?x, 2)];
create feed A from B as $b join acme.C as $c on n where $b[n = 1];
register feed B apply 'x.xsl' as A;
subscribe to acme.A output file 'x.atom';
advertise A where near('x');
drop feed `two words`;
explain feed A;
register operator A(x int) from 'm:f';
"""


@pytest.mark.parametrize("statement", parse_script(STATEMENTS), ids=str)
def test_every_name_of_a_statement_is_renamed(statement: object) -> None:
    renamed = rename_definitions(statement, lambda name: f"x.{name}")  # type: ignore[arg-type]
    seen: list[str] = []
    back = rename_definitions(renamed, lambda name: seen.append(name) or name.removeprefix("x."))  # type: ignore[func-returns-value]
    assert back == statement
    assert all(name.startswith("x.") for name in seen)
    assert len(seen) == len(set(seen)) > 0
    assert parse(unparse(renamed)) == renamed


# --- what is seen ---------------------------------------------------------------------------------


def test_tenants_use_the_same_names_for_different_things(catalog: Catalog) -> None:
    acme, globex = acting(catalog, "acme"), acting(catalog, "globex")
    for tenant, kind in ((acme, "int"), (globex, "text")):
        execute(tenant, f"register stream S from post (n {kind}); create feed F from S;")
        assert names(tenant) == ["F", "S"]
    assert names(catalog) == ["acme.F", "acme.S", "globex.F", "globex.S"]
    assert unparse(catalog.definitions()["acme.F"]) == "create feed acme.F\n  from acme.S;"
    assert unparse(acme.definitions()["F"]) == "create feed F\n  from S;"
    (listed,) = [each for each in acme.list_definitions() if each.name == "F"]
    assert listed.definition == "create feed F\n  from S;"
    execute(acme, "create feed Big from acme.S where n > 3;")  # one's own tenant may be named
    with pytest.raises(LanguageError):
        execute(globex, "create feed Big from S where n > 3;")  # n is a text there
    assert (
        execute(acme, "drop feed Big; drop feed F; drop stream acme.S;")[-1] == "dropped source S"
    )
    assert names(catalog) == ["globex.F", "globex.S"]


def error_of(catalog: TenantCatalog, script: str) -> str:
    with pytest.raises(HeadgateError) as caught:
        execute(catalog, script)
    return f"{type(caught.value).__name__}: {caught.value}"


@pytest.mark.parametrize(
    "script",
    [
        "create feed X from {}.S;",
        "create feed X from {}.F where t contains 'a';",
        "create feed X from N as $n join last 3 items on {}.F with $n[t = window.t];",
        "create feed X from N where {}.near('a');",
        "subscribe to {}.F output mail 'a@b.org';",
        "register feed {}.F apply 'x.xsl' as X;",
        "explain feed {}.F;",
        "advertise {}.S where t contains 'a';",
        "drop feed {}.F;",
        "drop stream {}.S;",
        "create feed X from ({}.S1 | ... | {}.S3);",
        "create feed X from ({}.S1 | ... | {}.SN);",
    ],
)
def test_what_another_tenant_has_is_as_if_it_did_not_exist(catalog: Catalog, script: str) -> None:
    """The error is that for a tenant that does not exist."""
    execute(
        catalog,
        "register operator globex.near(x text) from 'm:f';"
        + "".join(f"register stream globex.S{n} from post (t text);" for n in ("", 1, 2, 3))
        + "create feed globex.F from globex.S;",
    )
    acme = acting(catalog, "acme")
    execute(acme, "register stream N from post (t text);")
    there = error_of(acme, script.format(*["globex"] * 2))
    nowhere = error_of(acme, script.format(*["globey"] * 2))
    assert there == nowhere.replace("globey", "globex")
    assert names(acme) == ["N"]


def test_grants(catalog: Catalog) -> None:
    execute(
        catalog,
        "register stream Wire from post (t text);"
        "create feed Rock from Wire where t contains 'rock';",
    )
    acme, globex = acting(catalog, "acme"), acting(catalog, "globex")
    local = acting(catalog, "local")
    local.grant("Rock", "acme", Right.READ)
    assert names(acme) == ["local.Rock"]
    assert names(globex) == []
    assert [each.definition for each in acme.list_definitions()] == [""]
    execute(acme, "subscribe to local.Rock output mail 'a@b.org';")
    assert [each.feed for each in acme.list_subscriptions()] == ["local.Rock"]
    assert local.list_subscriptions() == globex.list_subscriptions() == []
    with pytest.raises(LanguageError, match="no feed may be built on it"):
        execute(acme, "create feed Mine from local.Rock;")
    local.grant("Rock", "*", Right.USE)
    assert names(globex) == ["local.Rock"]
    execute(acme, "create feed Mine from local.Rock where t contains 'roll';")
    # Its inputs are not seen, and yet what is built on it works.
    assert names(acme) == ["Mine", "local.Rock"]
    definitions = {each.name: each.definition for each in acme.list_definitions()}
    assert definitions["local.Rock"].startswith("create feed local.Rock\n  from local.Wire")
    with pytest.raises(LanguageError, match=r"no source or feed 'local\.Wire'"):
        execute(acme, "create feed Other from local.Wire;")
    # Nobody drops or takes back what others need.
    with pytest.raises(InUse, match="1 definition of other tenants and 1 subscription"):
        execute(local, "drop feed Rock;")
    with pytest.raises(InUse, match="1 feeds of tenant 'acme' are built on it"):
        local.grant("Rock", "*", None)
    assert names(globex) == ["local.Rock"]  # what is refused changes nothing
    execute(acme, "drop feed Mine;")
    local.grant("Rock", "*", None)
    assert names(globex) == []
    assert [(each.definition, each.tenant, each.right) for each in local.list_grants()] == [
        ("Rock", "acme", Right.READ)
    ]
    with pytest.raises(UnknownName):
        acme.grant("local.Rock", "globex", Right.READ)  # not theirs to give
    for stranger in ("drop feed local.Rock;", "advertise local.Rock where t contains 'a';"):
        with pytest.raises(LanguageError, match="belongs to another tenant"):
            execute(acme, stranger)


def test_a_tenant_suspends_its_own_feeds_only(catalog: Catalog) -> None:
    for tenant in ("acme", "globex"):
        execute(
            acting(catalog, tenant), "register stream S from post (n int); create feed F from S;"
        )
    acme, globex = acting(catalog, "acme"), acting(catalog, "globex")
    assert acme.suspend("F", "too dear")
    assert [*acme.suspended()] == ["F"]
    assert globex.suspended() == {}
    assert [*catalog.suspended()] == ["acme.F"]
    with pytest.raises(UnknownName):
        globex.resume("acme.F")
    assert acme.resume("acme.F")


def test_tickets_of_another_tenant_are_worth_nothing(catalog: Catalog) -> None:
    acme, globex = acting(catalog, "acme"), acting(catalog, "globex")
    execute(acme, "register stream S from post (n int);")
    (outcome,) = acme.apply(parse_script("subscribe to S output mail 'a@b.org';"))
    for script in (f"unsubscribe '{outcome.ticket}';", f"renew '{outcome.ticket}';"):
        with pytest.raises(BadTicket):
            execute(globex, script)
    assert acme.count_subscriptions() == 1
    assert globex.count_subscriptions() == 0
    with pytest.raises(UnknownName):
        globex.get_subscription(outcome.subscription_id or 0)
    execute(acme, f"unsubscribe '{outcome.ticket}';")


def test_confirmed_addresses_are_those_of_one_tenant(catalog: Catalog) -> None:
    pending = {}
    for tenant in ("acme", "globex", "acme"):
        acts = acting(catalog, tenant)
        execute(acts, "register stream S from post (n int);")
        (outcome,) = acts.apply(parse_script("subscribe to S output mail 'a@b.org';"))
        pending.setdefault(tenant, []).append(outcome.is_pending)
        catalog.confirm(outcome.subscription_id or 0)
    assert pending == {"acme": [True, False], "globex": [True]}


@pytest.mark.parametrize(
    "script",
    [
        "register stream X from json 'x.json' (n int);",
        "register table X (n int key) from kafka 'topic';",
        "register documents X from xml 'x/*.xml';",
        "register operator X(n int) from 'm:f';",
        "register feed S apply 'x.xsl' as X;",
        "subscribe to S output file 'x.atom';",
        "subscribe to S output kafka 'topic';",
        "subscribe to S output console;",
        "subscribe to S apply 'x.xsl' output mail 'a@b.org';",
    ],
)
def test_the_machine_is_touched_only_with_permission(catalog: Catalog, script: str) -> None:
    acme = acting(catalog, "acme")
    execute(acme, "register stream S from post (n int); register feed https://a.b/rss as W;")
    with pytest.raises(LanguageError, match="tenant 'acme' may not"):
        execute(acme, script)
    catalog.add_tenant("trusted", may_use_machine=True)
    trusted = acting(catalog, "trusted")
    execute(trusted, "register stream S from post (n int);" + script)


def test_quotas_are_those_of_one_tenant(catalog: Catalog) -> None:
    catalog.set_quotas({Resource.STATEMENTS: 2}, "acme")
    acme, globex = acting(catalog, "acme"), acting(catalog, "globex")
    script = "register stream {0} from post (n int);"
    for name in "AB":
        execute(acme, script.format(name))
    with pytest.raises(QuotaExceeded):
        execute(acme, script.format("C"))
    for name in "ABC":
        execute(globex, script.format(name))
    assert acme.usage()[Resource.STATEMENTS] == 2
    assert acme.quotas() == {Resource.STATEMENTS: 2}
    assert globex.quotas() == {}


# --- tenants, tokens, audit -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "Acme", "a.b", "9a", "a b", "a" * 32, "é", "*"])
def test_bad_names_of_tenants(catalog: Catalog, name: str) -> None:
    with pytest.raises(InvalidValue):
        catalog.add_tenant(name)


def test_tenants_come_and_go(catalog: Catalog) -> None:
    with pytest.raises(NameTaken):
        catalog.add_tenant("acme")
    acme = acting(catalog, "acme")
    execute(acme, "register stream S from post (n int);")
    with pytest.raises(InUse, match="1 definitions"):
        catalog.remove_tenant("acme")
    execute(acme, "drop stream S;")
    catalog.remove_tenant("acme")
    assert [each.name for each in catalog.list_tenants()] == ["globex", "local"]
    with pytest.raises(CatalogError):
        catalog.remove_tenant("local")
    with pytest.raises(LanguageError, match="there is no tenant 'acme'"):
        execute(catalog, "register stream acme.S from post (n int);")


def test_a_token_acts_for_its_tenant_within_its_scopes(catalog: Catalog) -> None:
    acme = acting(catalog, "acme")
    issued = acme.issue_token([Scope.READ, Scope.POST], comment="for the till")
    principal = catalog.principal_of_token(issued.text)
    assert principal == Principal(
        "acme", f"token {issued.token.id}", frozenset({Scope.READ, Scope.POST})
    )
    holder = catalog.acting_as(principal)
    assert names(holder) == []
    for forbidden in ("register stream S from post (n int);", "subscribe to S output console;"):
        with pytest.raises(NotAllowed):
            execute(holder, forbidden)
    with pytest.raises(NotAllowed):
        holder.issue_token([Scope.READ])
    with pytest.raises(NotAllowed):
        acting(catalog, "acme", Scope.ADMIN).issue_token([Scope.WRITE])  # more than one's own
    assert issued.text not in repr(issued)
    (listed,) = acme.list_tokens()
    assert listed.comment == "for the till"
    assert listed.last_used_at is not None
    assert acting(catalog, "globex").list_tokens() == []
    for wrong in ("", "hg_", issued.text[:-1] + "~", issued.text + "x", "\ud800", "x" * 10**6):
        assert catalog.principal_of_token(wrong) is None
    with pytest.raises(UnknownName):
        acting(catalog, "globex").revoke_token(listed.id)
    acme.revoke_token(listed.id)
    assert catalog.principal_of_token(issued.text) is None


def test_tokens_expire(catalog: Catalog) -> None:
    acme = acting(catalog, "acme")
    issued = acme.issue_token([Scope.READ], validity=timedelta(seconds=0))
    assert catalog.principal_of_token(issued.text) is None
    forever = acme.issue_token([Scope.READ], validity=None)
    assert catalog.principal_of_token(forever.text) is not None


def test_the_audit_says_who_did_what_and_no_secret(catalog: Catalog) -> None:
    acme = acting(catalog, "acme")
    execute(acme, "register stream S from post (n int); create feed F from S;")
    (outcome,) = acme.apply(
        parse_script("subscribe to F output webhook 'https://a.b/secret-path';")
    )
    execute(acme, f"unsubscribe '{outcome.ticket}';")
    acme.issue_token([Scope.READ])
    entries = acme.list_audit()
    assert [(each.actor, each.action, each.subject) for each in reversed(entries)][:4] == [
        ("acme's", "registered source", "S"),
        ("acme's", "created feed", "F"),
        ("acme's", "subscribed", "F"),
        ("acme's", "removed", "F"),
    ]
    assert entries[0].action == "issued token"
    told = repr(entries)
    assert "secret-path" not in told
    assert str(outcome.ticket) not in told
    assert acting(catalog, "globex").list_audit() == []
    assert len(catalog.list_audit()) > len(entries)
    (first,) = acme.list_audit(before_id=entries[-2].id, limit=10)
    assert first == entries[-1]


# --- any history ----------------------------------------------------------------------------------

TENANTS = ("local", "acme", "globex")
written_names = st.sampled_from(
    ["A", "B", "C", "local.A", "local.B", "acme.A", "acme.B", "globex.A"]
)
steps = st.one_of(
    st.tuples(st.just("source"), st.sampled_from(TENANTS), st.sampled_from("ABC")),
    st.tuples(st.just("feed"), st.sampled_from(TENANTS), st.sampled_from("ABC"), written_names),
    st.tuples(st.just("drop"), st.sampled_from(TENANTS), written_names),
    st.tuples(st.just("subscribe"), st.sampled_from(TENANTS), written_names),
    st.tuples(
        st.just("grant"),
        st.sampled_from(TENANTS),
        st.sampled_from("ABC"),
        st.sampled_from([*TENANTS, "*"]),
        st.sampled_from([None, Right.READ, Right.USE]),
    ),
)


class Model:
    """What there should be, as plain sets of (tenant, name)."""

    def __init__(self) -> None:
        self.inputs: dict[tuple[str, str], tuple[str, str] | None] = {}
        self.grants: dict[tuple[tuple[str, str], str], Right] = {}
        self.subscribed: list[tuple[str, tuple[str, str]]] = []

    def key(self, tenant: str, written: str) -> tuple[str, str]:
        owner, dot, name = written.rpartition(".")
        return (owner, name) if dot else (tenant, name)

    def right(self, tenant: str, key: tuple[str, str]) -> str:
        if key not in self.inputs:
            return ""
        if key[0] == tenant:
            return "use"
        return max(self.grants.get((key, tenant), ""), self.grants.get((key, "*"), ""))

    def users(self, key: tuple[str, str]) -> bool:
        return key in self.inputs.values() or any(feed == key for _, feed in self.subscribed)

    def allows(self, step: tuple[object, ...]) -> bool:
        kind, tenant, name, *rest = step
        key = self.key(str(tenant), str(name))
        if kind == "source":
            return key not in self.inputs or self.inputs[key] is None
        if kind == "feed":
            used = self.key(str(tenant), str(rest[0]))
            if self.right(str(tenant), used) < "use" or used == key:
                return False
            return key not in self.inputs or self.inputs[key] == used
        if kind == "drop":
            return key[0] == tenant and key in self.inputs and not self.users(key)
        if kind == "subscribe":
            return bool(self.right(str(tenant), key))
        to, right = rest
        if key not in self.inputs:
            return False
        after = {**self.grants, (key, to): right}
        changed = Model()
        changed.inputs = self.inputs
        changed.grants = {k: v for k, v in after.items() if v}  # type: ignore[misc]
        builders = [user for user, used in self.inputs.items() if used == key]
        subscribers = [who for who, feed in self.subscribed if feed == key]
        return all(changed.right(user[0], key) >= "use" for user in builders) and all(
            changed.right(who, key) for who in subscribers
        )

    def take(self, step: tuple[object, ...]) -> None:
        kind, tenant, name, *rest = step
        key = self.key(str(tenant), str(name))
        if kind == "source":
            self.inputs[key] = None
        elif kind == "feed":
            self.inputs[key] = self.key(str(tenant), str(rest[0]))
        elif kind == "drop":
            del self.inputs[key]
            self.grants = {k: v for k, v in self.grants.items() if k[0] != key}
        elif kind == "subscribe":
            self.subscribed.append((str(tenant), key))
        elif rest[1] is None:
            self.grants.pop((key, str(rest[0])), None)
        else:
            self.grants[key, str(rest[0])] = rest[1]  # type: ignore[assignment]

    def seen(self, tenant: str) -> set[str]:
        return {
            name if owner == tenant else f"{owner}.{name}"
            for owner, name in self.inputs
            if self.right(tenant, (owner, name))
        }


def perform(catalog: Catalog, step: tuple[object, ...]) -> None:
    kind, tenant, name, *rest = step
    acts = acting(catalog, str(tenant))
    if kind == "grant":
        to, right = rest
        acts.grant(str(name), str(to), right)  # type: ignore[arg-type]
        return
    is_feed = False
    if kind == "drop":
        entry = acts.definitions().entry(acts.view.shown(acts.view.kept(str(name))))
        is_feed = entry is not None and entry.kind == "feed"
    execute(
        acts,
        {
            "source": f"register stream {name} from post (t text);",
            "feed": f"create feed {name} from {rest[0] if rest else ''};",
            "drop": f"drop {'feed' if is_feed else 'stream'} {name};",
            "subscribe": f"subscribe to {name} output mail 'a@b.org';",
        }[str(kind)],
    )


def shown_to_local(key: tuple[str, str]) -> str:
    return key[1] if key[0] == "local" else ".".join(key)


@given(st.lists(steps, max_size=25))
@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
def test_any_history_of_three_tenants(history: list[tuple[object, ...]]) -> None:
    model = Model()
    with Catalog.open("sqlite://") as catalog:
        for name in TENANTS[1:]:
            catalog.add_tenant(name)
        for step in history:
            allowed = model.allows(step)
            try:
                perform(catalog, step)
            except HeadgateError:
                assert not allowed, step
            else:
                assert allowed, step
                model.take(step)
            for tenant in TENANTS:
                acts = acting(catalog, tenant)
                assert set(names(acts)) == model.seen(tenant)
                subscribed = sorted(each.feed for each in acts.list_subscriptions())
                expected = [
                    key[1] if key[0] == tenant else ".".join(key)
                    for who, key in model.subscribed
                    if who == tenant
                ]
                assert subscribed == sorted(expected)
            assert set(names(catalog)) == {shown_to_local(key) for key in model.inputs}
            assert catalog.view is EVERYTHING


@pytest.mark.parametrize("tenant", ["local", "acme"])
def test_a_tenant_may_write_its_own_name_before_a_definition(catalog: Catalog, tenant: str) -> None:
    own = acting(catalog, tenant)
    execute(own, f"register stream S from post (t text); create feed {tenant}.F from {tenant}.S;")
    with own.looking_up() as definitions:
        assert definitions.sees("F")
        assert definitions.sees(f"{tenant}.F")
        assert definitions.number_of(f"{tenant}.F") == definitions.number_of("F")
    assert execute(own, f"drop feed {tenant}.F;") == ["dropped feed F"]
