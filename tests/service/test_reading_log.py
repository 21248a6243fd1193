"""What is read and starred, against a model that is a set of positions for each."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.deliver.log_world import news
from tests.service.test_api import Home

from headgate.catalog import following, reading
from headgate.catalog.catalog import Catalog
from headgate.catalog.principals import Principal, Scope
from headgate.catalog.tenant_catalog import TenantCatalog
from headgate.language.parse import parse_script
from headgate.model.errors import NotAllowed, QuotaExceeded, UnknownName
from headgate.service import reading_log, reading_marks, reading_windows
from headgate.service.log_access import LogAccess
from headgate.service.reader_ids import item_id, parts_of
from headgate.service.reading_log import Reading, WantedItems
from headgate.service.reading_marks import compact, mark_all, mark_items

SCRIPT = """
register stream News from post (title text, n int);
create feed A from News where n > 1;
create feed B from News where n > 2;
create feed C from News where n > 3;
"""
FEEDS = ("A", "B", "C", "News")
Positions = st.lists(st.integers(0, 40), max_size=5)
SomeFeeds = st.sets(st.sampled_from(FEEDS[:3]))


def reader_of(catalog: Catalog, tenant: str = "acme", name: str = "ada") -> TenantCatalog:
    """The catalog for an account, which is made if needed."""
    if name not in [each.name for each in catalog.accounts.list()]:
        catalog.accounts.add(name)
    catalog.accounts.join(name, tenant, Scope)
    return catalog.acting_as(Principal(tenant, f"account {name}", frozenset(Scope)))


class ReadingWorld:
    """A tenant with a source and three feeds, and a log."""

    def __init__(self, folder: Path) -> None:
        self.home = Home(folder)
        owner = Principal("acme", "the test", frozenset(Scope))
        self.home.catalog.acting_as(owner).apply(parse_script(SCRIPT))
        self.log = self.home.make_log()
        self.access = LogAccess(self.home.headgate)
        self.catalog = reader_of(self.home.catalog)
        definitions = self.home.catalog.definitions()
        self.numbers = {name: definitions.number_of(f"acme.{name}") for name in FEEDS[:3]}
        self.count = 0

    def publish(self, *feeds: str) -> int:
        """An item of the source that these feeds have; its position."""
        numbers = sorted(self.numbers[each] for each in feeds)
        item = news(f"n{self.count}", *(numbers or [999_999]), source="acme.News")
        self.log.publish(item)
        self.count += 1
        return self.count - 1

    def reading(self) -> Reading:
        return Reading(self.catalog, self.access)


class ReadingMachine(RuleBasedStateMachine):
    """The model: for each feed its positions, and a set of those that are read and starred."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.world = ReadingWorld(Path(self.folder.name))
        self.having: dict[str, set[int]] = {name: set() for name in FEEDS}
        self.arrived_us: dict[int, int] = {}
        self.read: set[int] = set()
        self.starred: set[int] = set()
        self.first = 0

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.home.catalog.close()
            self.folder.cleanup()

    @rule(feeds=SomeFeeds)
    def publish(self, feeds: set[str]) -> None:
        position = self.world.publish(*feeds)
        for name in {*feeds, "News"}:
            self.having[name].add(position)

    @property
    def there(self) -> set[int]:
        return {each for each in self.having["News"] if each >= self.first}

    @rule(positions=Positions, is_read=st.booleans())
    def mark(self, positions: list[int], is_read: bool) -> None:
        mark_items(self.world.reading(), positions, is_read=is_read)
        known = self.there & set(positions)
        self.read = self.read | known if is_read else self.read - known

    @rule(positions=Positions, is_starred=st.booleans())
    def star(self, positions: list[int], is_starred: bool) -> None:
        mark_items(self.world.reading(), positions, is_starred=is_starred)
        if is_starred:
            self.starred |= self.there & set(positions)
        else:
            self.starred -= set(positions)

    @rule(name=st.sampled_from(FEEDS), below=st.none() | st.integers(0, 40))
    def mark_feed(self, name: str, below: int | None) -> None:
        reading = self.world.reading()
        feeds = [each for each in reading.feeds if each.name == name]
        mark_all(reading, feeds, below)
        end = self.world.count if below is None else below
        self.read |= {each for each in self.having[name] if each < end}

    @rule()
    def compact(self) -> None:
        compact(self.world.reading())

    @rule(name=st.sampled_from(FEEDS), is_followed=st.booleans())
    def choose(self, name: str, is_followed: bool) -> None:
        """Whether a feed is followed changes nothing about what is read."""
        names = {each.name for each in self.world.reading().followed}
        if is_followed:
            self.world.catalog.follow(name)
        elif name in names:
            self.world.catalog.unfollow(name)

    @precondition(lambda self: self.world.count > self.first)
    @rule(data=st.data())
    def trim(self, data: st.DataObject) -> None:
        self.first = data.draw(st.integers(self.first, self.world.count))
        self.world.log.trim(self.first)

    @invariant()
    def is_as_the_model_says(self) -> None:
        if not hasattr(self, "world"):
            return
        reading = self.world.reading()
        assert reading.read_states(self.there) == {each: each in self.read for each in self.there}
        counts = reading.unread_counts()
        for feed in reading.followed:
            there = self.having[feed.name] & self.there
            assert counts[feed.feed_id].count == len(there - self.read)
            for is_read in (None, True, False):
                wanted = {
                    each for each in there if is_read is None or (each in self.read) == is_read
                }
                page = reading.page(WantedItems([feed], is_read=is_read, limit=100))
                ids = [each.id for each in page.references]
                assert ids == sorted((item_id(p, feed.feed_id) for p in wanted), reverse=True)
        assert set(reading.stars) == self.starred
        ids = [item_id(p, each) for p, star in reading.stars.items() for each in star.feed_ids]
        entries = reading.entries(ids)
        assert {parts_of(each)[0] for each in entries} == self.starred
        for entry in entries.values():
            position = entry.item.position
            assert entry.item.id == f"n{position}"
            assert entry.is_starred
            assert entry.is_read == (position in self.read or position < self.first)


TestReading = ReadingMachine.TestCase
TestReading.settings = settings(
    max_examples=25,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture
def world(tmp_path: Path) -> ReadingWorld:
    return ReadingWorld(tmp_path)


def test_counts_stop_at_a_bound_and_windows_do_not_matter(
    world: ReadingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading_log, "COUNT_MAX", 4)
    for number in range(7):
        world.publish(*(["A"] if number % 3 == 0 else ["B"]))
    found = []
    for size in (1, 2, 1 << 14):
        monkeypatch.setattr(reading_windows, "WINDOW_MIN", size)
        monkeypatch.setattr(reading_windows, "WINDOW_MAX", size)
        reading = world.reading()
        names = {each.feed_id: each.name for each in reading.feeds}
        counts = {names[id_]: each.count for id_, each in reading.unread_counts().items()}
        page = reading.page(WantedItems(reading.followed, limit=5, is_ascending=True))
        found.append((counts, [each.id for each in page.references], page.has_more))
    assert found[0][0] == {"A": 3, "B": 4, "C": 0, "News": 4}
    assert found[0] == found[1] == found[2]


def test_reading_everything_item_by_item_leaves_no_marks(
    world: ReadingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading_marks, "COMPACTED_EVERY", 10)
    for _ in range(30):
        world.publish("A")
    for position in range(30):
        mark_items(world.reading(), [position], is_read=True)
        assert len(world.catalog.reading_marks()) <= 10
    assert all(world.reading().read_states(range(30)).values())


def test_a_reader_has_bounds_and_is_told(
    world: ReadingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MARKS_MAX", 3)
    monkeypatch.setattr(reading, "STARRED_MAX", 2)
    for _ in range(5):
        world.publish("A")
    with pytest.raises(QuotaExceeded, match="mark a feed as read"):
        mark_items(world.reading(), [0, 1, 2, 4], is_read=True)
    assert not world.catalog.reading_marks(), "nothing of it is kept"
    mark_items(world.reading(), [0, 1, 2], is_read=True)
    with pytest.raises(QuotaExceeded, match="remove the star"):
        mark_items(world.reading(), [0, 1, 2], is_starred=True)
    assert not world.catalog.list_stars()
    monkeypatch.setattr(reading, "STARRED_BYTES_MAX", 10)
    with pytest.raises(QuotaExceeded, match="10 bytes"):
        mark_items(world.reading(), [0], is_starred=True)


def test_who_has_never_chosen_follows_the_first_feeds(
    world: ReadingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "FIRST_FEEDS", 3)
    assert [each.name for each in world.catalog.followed_feeds()] == ["A", "B", "C"]
    other = reader_of(world.home.catalog, name="bob")
    other.follow("News")
    other.unfollow("B")
    names = {each.name: each.is_followed for each in other.followed_feeds()}
    assert names == {"A": True, "B": False, "C": True, "News": True}
    assert len(world.catalog.followed_feeds()) == 3, "another one's choice"
    ids = {each.name: each.feed_id for each in other.followed_feeds()}
    other.unfollow("News")
    assert other.follow("News").feed_id == ids["News"]
    for wrong in ("Nothing", "acme.Nothing", "\0", "globex.A", "x" * 1_000):
        with pytest.raises(UnknownName):
            other.follow(wrong)
        with pytest.raises(UnknownName):
            other.unfollow(wrong)


def test_feed_ids_are_used_again_when_none_is_left(
    world: ReadingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "FEEDS_MAX", 4)
    owner = world.home.catalog.acting_as(Principal("acme", "the test", frozenset(Scope)))
    before = {each.name: each.feed_id for each in world.catalog.followed_feeds()}
    assert sorted(before.values()) == [1, 2, 3, 4]
    owner.apply(parse_script("create feed D from News where n > 4;"))
    with pytest.raises(QuotaExceeded, match="at most 4 feeds"):
        world.catalog.follow("D")
    owner.apply(parse_script("drop feed B;"))
    assert world.catalog.follow("D").feed_id == before["B"]


def test_state_ends_with_its_reader(world: ReadingWorld) -> None:
    world.publish("A")
    mark_items(world.reading(), [0], is_read=True, is_starred=True)
    owner = Principal("acme", "the test", frozenset(Scope))
    token = world.home.catalog.acting_as(owner).issue_token([Scope.READ])
    program = world.home.catalog.acting_as(
        Principal("acme", f"token {token.token.id}", frozenset([Scope.READ]))
    )
    assert not program.list_stars(), "a program has its own"
    mark_items(Reading(program, world.access), [0], is_starred=True)
    assert program.list_stars()
    world.home.catalog.acting_as(owner).revoke_token(token.token.id)
    assert not program.list_stars()
    with pytest.raises(NotAllowed, match="does not exist any more"):
        program.followed_feeds()
    world.home.catalog.accounts.remove("ada")
    reader_of(world.home.catalog)
    assert not world.catalog.list_stars()
    with pytest.raises(NotAllowed, match="sign in"):
        world.home.catalog.acting_as(owner).followed_feeds()
