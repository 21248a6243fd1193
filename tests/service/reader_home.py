"""A service with two tenants, an account in each, a log, and feed readers that have signed in."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import httpx
from tests.deliver.log_world import Published, news
from tests.service.test_api import PATIENCE_S, Home

from headgate.catalog.principals import Principal, Scope
from headgate.language.parse import parse_script
from headgate.model.items import Item

SCRIPT = """
register stream News from post (title text, n int);
create feed Rock from News where title contains 'rock';
create feed Loud from Rock where title contains 'loud';
register feed https://muse.example/rss as Muse in folder 'Music', 'Bands';
"""
API = "/reader/api/0"
STATE = "user/-/state/com.google/"


class ReaderHome(Home):
    """Ada reads for acme, Bob for globex; both tenants have the same names."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.log = self.make_log()
        self.passwords: dict[str, str] = {}
        self.count = 0
        for account, tenant in (("ada", "acme"), ("bob", "globex")):
            owner = Principal(tenant, "the test", frozenset(Scope))
            self.catalog.acting_as(owner).apply(parse_script(SCRIPT))
            self.catalog.accounts.add(account)
            self.catalog.accounts.join(account, tenant, Scope)
            made = self.catalog.reader_passwords.create(account, tenant, actor="the test")
            self.passwords[account] = made.password

    def put(self, tenant: str, title: str, *feeds: str, source: str = "News", **more: str) -> int:
        """An item of a source that some feeds have; its position. Each arrives a minute after the
        one before."""
        definitions = self.catalog.definitions()
        numbers = [definitions.number_of(f"{tenant}.{each}") for each in feeds]
        plain = news(title, source=f"{tenant}.{source}").item
        attributes = {**plain.attributes, "title": title, **more}
        item = Item(title, plain.source, plain.time, attributes)
        self.log.pass_time(60)
        self.log.publish(Published(item, tuple(sorted(numbers)) or (999_999,)))
        self.count += 1
        return self.count - 1

    def arrived_s(self, position: int) -> int:
        """When an item arrived, in seconds."""
        before = timedelta(minutes=self.count - 1 - position)
        return int((self.log.now - before).timestamp())

    def reader(self, account: str = "ada", login: str = "") -> httpx.Client:
        """A client that has signed in."""
        form = {"Email": login or account, "Passwd": self.passwords[account]}
        answer = httpx.post(f"{self.url}/accounts/ClientLogin", data=form, timeout=PATIENCE_S)
        assert answer.status_code == 200, answer.text
        fields = dict(line.split("=", 1) for line in answer.text.splitlines())
        headers = {"authorization": f"GoogleLogin auth={fields['Auth']}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=PATIENCE_S)

    def session(self, account: str, tenant: str) -> httpx.Client:
        """A client of /v1 with a token of a session."""
        accounts = self.catalog.accounts
        secret = accounts.use_link(accounts.make_link(account))
        assert secret is not None
        session = accounts.session(secret)
        assert session is not None
        token = accounts.api_token(session, tenant)
        headers = {"authorization": f"Bearer {token}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=PATIENCE_S)
