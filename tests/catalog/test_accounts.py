"""Accounts: whatever is signed in, ended and taken back, a secret opens exactly what it should."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from headgate.catalog import accounts as accounts_module
from headgate.catalog.accounts import LINK_VALIDITY, OWNER_ACCOUNT, SESSION_VALIDITY, Accounts
from headgate.catalog.catalog import Catalog
from headgate.catalog.principals import Scope
from headgate.model.errors import InvalidValue, NameTaken, UnknownName

PEOPLE = ("ada", "bob")
TENANTS = ("acme", "globex")
PASSWORDS = ("a long password", "another password")
START = datetime(2026, 11, 1, tzinfo=UTC)
people, tenants, passwords = map(st.sampled_from, (PEOPLE, TENANTS, PASSWORDS))


class AccountsMachine(RuleBasedStateMachine):
    """The model: passwords, memberships and live secrets, in dictionaries."""

    @initialize()
    def begin(self) -> None:
        self.now = START
        self.catalog = Catalog.open("sqlite://", clock=lambda: self.now)
        for name in TENANTS:
            self.catalog.add_tenant(name)
        self.accounts: Accounts = self.catalog.accounts
        self.passwords: dict[str, str | None] = {}
        self.members: dict[tuple[str, str], set[Scope]] = {}
        self.sessions: dict[str, tuple[str, datetime]] = {}
        self.links: dict[str, tuple[str, datetime]] = {}
        self.dead: set[str] = set()
        self.tokens: dict[str, tuple[str, str]] = {}

    def teardown(self) -> None:
        if hasattr(self, "catalog"):
            self.catalog.close()

    @rule(name=people, password=st.none() | passwords)
    def add(self, name: str, password: str | None) -> None:
        if name in self.passwords:
            with pytest.raises(NameTaken):
                self.accounts.add(name, password)
        else:
            self.accounts.add(name, password)
            self.passwords[name] = password

    @rule(name=people)
    def remove(self, name: str) -> None:
        if name not in self.passwords:
            with pytest.raises(UnknownName):
                self.accounts.remove(name)
            return
        self.accounts.remove(name)
        del self.passwords[name]
        self.members = {key: each for key, each in self.members.items() if key[0] != name}
        self._end(name, self.links)
        self._end(name, self.sessions)

    def _end(self, name: str, secrets: dict[str, tuple[str, datetime]]) -> None:
        for secret in [each for each, (account, _) in secrets.items() if account == name]:
            del secrets[secret]
            self.dead.add(secret)

    @rule(name=people, password=passwords)
    def set_password(self, name: str, password: str) -> None:
        if name in self.passwords:
            self.accounts.set_password(name, password)
            self.passwords[name] = password
            self._end(name, self.sessions)
            self._end(name, self.links)

    @rule(name=people, tenant=tenants, scopes=st.sets(st.sampled_from(Scope), max_size=2))
    def join(self, name: str, tenant: str, scopes: set[Scope]) -> None:
        if name in self.passwords:
            self.accounts.join(name, tenant, scopes)
            self.members[name, tenant] = scopes

    @rule(name=people, password=passwords)
    def sign_in(self, name: str, password: str) -> None:
        secret = self.accounts.sign_in(name, password)
        assert (secret is not None) == (self.passwords.get(name) == password)
        if secret is not None:
            self.sessions[secret] = name, self.now + SESSION_VALIDITY

    @rule(name=people)
    def make_link(self, name: str) -> None:
        if name in self.passwords:
            self.links[self.accounts.make_link(name)] = name, self.now + LINK_VALIDITY

    @rule(data=st.data())
    def use_link(self, data: st.DataObject) -> None:
        secrets = [*self.links, *self.dead, *self.sessions]
        if not secrets:
            return
        secret = data.draw(st.sampled_from(secrets))
        is_valid = secret in self.links and self.links[secret][1] > self.now
        assert self.accounts.is_link(secret) == is_valid
        session = self.accounts.use_link(secret)
        assert (session is not None) == is_valid
        if session is not None:
            name, _ = self.links.pop(secret)
            self.dead.add(secret)
            self.sessions[session] = name, self.now + SESSION_VALIDITY

    @rule(data=st.data())
    def sign_out(self, data: st.DataObject) -> None:
        if self.sessions:
            secret = data.draw(st.sampled_from(list(self.sessions)))
            self.accounts.sign_out(secret)
            del self.sessions[secret]
            self.dead.add(secret)

    @rule(hours=st.sampled_from([0.5, 2, 24 * 15]))
    def time_passes(self, hours: float) -> None:
        self.now += timedelta(hours=hours)

    @invariant()
    def secrets_open_what_they_should(self) -> None:
        if not hasattr(self, "sessions"):
            return
        for secret in self.dead | self.links.keys():
            assert self.accounts.session(secret) is None
        for secret, (name, until) in self.sessions.items():
            session = self.accounts.session(secret)
            assert (session is not None) == (until > self.now)
            for tenant in TENANTS:
                scopes = self.members.get((name, tenant), set())
                token = session and self.accounts.api_token(session, tenant)
                assert bool(token) == (session is not None and bool(scopes))
                if token:
                    self.tokens[token] = secret, tenant
        for token, (secret, tenant) in self.tokens.items():
            name, until = self.sessions.get(secret, ("", START))
            scopes = self.members.get((name, tenant), set()) if until > self.now else set()
            principal = self.catalog.principal_of_token(token)
            if scopes:
                assert principal is not None
                assert (principal.tenant, principal.scopes) == (tenant, scopes)
            else:
                assert principal is None


TestAccounts = AccountsMachine.TestCase
TestAccounts.settings = settings(deadline=None, stateful_step_count=25, max_examples=30)


@pytest.fixture(autouse=True, scope="module")
def quick_hashes() -> object:
    """The same algorithm with little memory."""
    patch = pytest.MonkeyPatch()
    hasher = accounts_module.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    patch.setattr(accounts_module, "_hasher", hasher)
    yield
    patch.undo()


def test_names_and_passwords_have_limits() -> None:
    with Catalog.open("sqlite://") as catalog:
        for name in ("", "A", "a b", "<script>", "x" * 101):
            with pytest.raises(InvalidValue):
                catalog.accounts.add(name)
        for password in ("short", "x" * 201):
            with pytest.raises(InvalidValue):
                catalog.accounts.add("ada", password)
        assert catalog.accounts.list() == []
        assert catalog.accounts.owner() == catalog.accounts.owner() == OWNER_ACCOUNT
        (owner,) = catalog.accounts.list()
        assert owner.memberships == {"local": frozenset(Scope)}
        actions = [(each.action, each.subject) for each in catalog.list_audit()]
        assert ("added account", "owner") in actions


def test_changed_tokens_open_nothing() -> None:
    with Catalog.open("sqlite://") as catalog:
        catalog.add_tenant("acme")
        link = catalog.accounts.make_link(catalog.accounts.owner())
        secret = catalog.accounts.use_link(link)
        assert secret is not None
        session = catalog.accounts.session(secret)
        assert session is not None
        token = catalog.accounts.api_token(session, "local")
        assert token is not None
        assert catalog.principal_of_token(token) is not None
        for wrong in (token[:-1], token.replace("_local_", "_acme_"), token + "0", "hga_"):
            assert catalog.principal_of_token(wrong) is None
        assert catalog.accounts.api_token(session, "acme") is None
