"""Whole deliveries: real receivers in every mood, retries, dead letters, periods, other people."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import feedparser
import pytest
from tests.deliver.servers import Receiver, free_port, mail_server, receiver
from tests.deliver.things import NOW, NOW_S, delivery, find_among, item, settings

from headgate.deliver import safe_folder as folder_module
from headgate.deliver.deliverer import Deliverer
from headgate.deliver.outbox import Outbox
from headgate.deliver.output_webhook import WebhookSettings
from headgate.deliver.records import DeliveryState, ItemDelivery, PushSubscription, Transport
from headgate.deliver.schedule import DeliverySchedule, boundary_after_s, phase_s
from headgate.deliver.transform import TransformLimits
from headgate.model.addresses import LOOPBACK
from headgate.model.errors import StateError

EXAMPLES = Path(__file__).parents[2] / "examples"
LOCAL = WebhookSettings(key=b"key", allowed=LOOPBACK, step_s=5, total_s=5)


@pytest.fixture
def outbox(tmp_path: Path) -> Iterator[Outbox]:
    with Outbox.open(tmp_path / "outbox") as found:
        yield found


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiver() as found:
        yield found


def file_to(target: str, number: int = 1, **more: object) -> PushSubscription:
    return PushSubscription(number, 1, "Rock", Transport.FILE, target, **more)  # type: ignore[arg-type]


def mail_to(target: str, number: int = 1, **more: object) -> PushSubscription:
    return PushSubscription(number, 1, "Rock", Transport.MAIL, target, **more)  # type: ignore[arg-type]


def call_to(target: str, number: int = 1, **more: object) -> PushSubscription:
    return PushSubscription(number, 1, "Rock", Transport.WEBHOOK, target, **more)  # type: ignore[arg-type]


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


# --- files ----------------------------------------------------------------------------------------


def test_a_file_has_the_last_items(outbox: Outbox, tmp_path: Path):
    outbox.put([delivery(f"n{number}") for number in range(5)], now_s=NOW_S)
    with Deliverer(outbox, settings(tmp_path, items_in_file=3), find_among(file_to("a.rss"))) as d:
        report = d.run_due(NOW)
        assert (report.sent, report.files_written) == (5, 1)
        outbox.put([delivery(f"n{number}") for number in range(7)], now_s=NOW_S)
        assert d.run_due(NOW).sent == 2
        assert d.run_due(NOW).runs == 0
    read = feedparser.parse((tmp_path / "out" / "a.rss").read_bytes())
    assert [each.title for each in read.entries] == [f"Title of n{n}" for n in (6, 5, 4)]
    assert outbox.count()[DeliveryState.SENT] == 7


def test_a_replayed_batch_writes_nothing(outbox: Outbox, tmp_path: Path):
    batch = [delivery("a"), delivery("b")]
    with Deliverer(outbox, settings(tmp_path), find_among(file_to("a.rss"))) as deliverer:
        outbox.put(batch, now_s=NOW_S)
        deliverer.run_due(NOW)
        before = (tmp_path / "out/a.rss").stat()
        assert outbox.put(batch, now_s=NOW_S + 1) == 0
        assert deliverer.run_due(later(1)).sent == 0
    assert (tmp_path / "out/a.rss").stat().st_ino == before.st_ino


def test_a_full_disk_is_retried_and_loses_nothing(
    outbox: Outbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    outbox.put([delivery("a")], now_s=NOW_S)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with Deliverer(
        outbox, settings(tmp_path, attempts_max=1), find_among(file_to("a.rss"))
    ) as deliverer:
        with monkeypatch.context() as patch:
            patch.setattr(folder_module.os, "replace", full)
            patch.setattr(folder_module.os, "fsync", full)
            report = deliverer.run_due(NOW)
            assert (report.sent, report.failed, report.dead) == (0, 1, 0)
            assert "No space left" in report.errors[0].error
        (kept,) = outbox.pending(1, limit=9)
        assert "No space left" in kept.error
        assert deliverer.run_due(later(9)).runs == 0
        assert deliverer.run_due(later(10)).sent == 1
    assert b"Title of a" in (tmp_path / "out/a.rss").read_bytes()


def test_one_file_belongs_to_one_subscription(outbox: Outbox, tmp_path: Path):
    both = [file_to("a.rss", 1), file_to("a.rss", 2)]
    with Deliverer(outbox, settings(tmp_path), find_among(*both)) as deliverer:
        for number in (1, 2):
            outbox.put([delivery(f"of {number}", subscription=number)], now_s=NOW_S)
            report = deliverer.run_due(NOW)
        assert report.dead == 1
        assert "subscription 1 writes 'a.rss' already" in report.errors[0].error
    assert b"of 2" not in (tmp_path / "out/a.rss").read_bytes()
    # When the first has gone, the second one gets it.
    with Deliverer(outbox, settings(tmp_path), find_among(both[1])) as deliverer:
        assert deliverer.replay(2, now=NOW) == 1
        assert deliverer.run_due(NOW).sent == 1
    assert b"of 2" in (tmp_path / "out/a.rss").read_bytes()


@pytest.mark.parametrize("path", ["../a.rss", "\ud800.rss", ""])
def test_a_bad_path_is_a_dead_letter(outbox: Outbox, tmp_path: Path, path: str):
    outbox.put([delivery("a")], now_s=NOW_S)
    with Deliverer(outbox, settings(tmp_path), find_among(file_to(path))) as deliverer:
        assert deliverer.run_due(NOW).dead == 1
    (dead,) = outbox.dead_letters()
    assert "is refused" in dead.error


# --- mail -----------------------------------------------------------------------------------------


def test_a_digest_is_sent_once(outbox: Outbox, tmp_path: Path):
    outbox.put([delivery("a"), delivery("b")], now_s=NOW_S)
    with (
        mail_server() as (server, mail),
        Deliverer(
            outbox, settings(tmp_path, mail=mail), find_among(mail_to("me@mail.org"))
        ) as deliverer,
    ):
        assert deliverer.run_due(NOW).sent == 2
        assert deliverer.run_due(later(1)).runs == 0
        (taken,) = server.taken
    assert b"Title of a" in taken.content
    assert b"Title of b" in taken.content


@pytest.mark.parametrize("mood", ["4xx", "drop", "away"])
def test_a_digest_is_retried_as_it_was(outbox: Outbox, tmp_path: Path, mood: str):
    outbox.put([delivery("a")], now_s=NOW_S)
    find = find_among(mail_to("me@mail.org"))
    with mail_server() as (server, mail):
        if mood == "away":
            away = type(mail)(mail.host, free_port(), tls=mail.tls, sender=mail.sender)
            with Deliverer(outbox, settings(tmp_path, mail=away), find) as deliverer:
                assert deliverer.run_due(NOW).failed == 1
        server.answers["DATA"] = "451 later" if mood == "4xx" else "250 OK"
        server.drop_after_data = mood == "drop"
        with Deliverer(outbox, settings(tmp_path, mail=mail), find) as deliverer:
            if mood != "away":
                assert deliverer.run_due(NOW).failed == 1
            outbox.put([delivery("b")], now_s=NOW_S + 1)
            server.answers.clear()
            server.drop_after_data = False
            assert deliverer.run_due(later(5)).runs == 0
            assert deliverer.run_due(later(10)).sent == 2
        contents = [envelope.content for envelope in server.taken]
        seen = [id_of(envelope.content) for envelope in server.seen]
    assert [b"Title of a" in each for each in contents] == [True, False]
    assert [b"Title of b" in each for each in contents] == [False, True]
    # However often it was sent, the first digest had one id.
    assert len(set(seen)) == 2
    assert seen[0] == id_of(contents[0])


def id_of(content: bytes) -> bytes:
    return next(line for line in content.splitlines() if line.startswith(b"Message-ID"))


def test_a_reader_that_does_not_exist_is_a_dead_letter(outbox: Outbox, tmp_path: Path):
    outbox.put([delivery("a", 1), delivery("a", 2)], now_s=NOW_S)
    find = find_among(mail_to("me\r\nBcc: x@a.org", 1), mail_to("me@mail.org", 2))
    with mail_server() as (server, mail):
        server.answers["RCPT"] = "550 unknown"
        with Deliverer(outbox, settings(tmp_path, mail=mail), find) as deliverer:
            report = deliverer.run_due(NOW)
            assert (report.dead, report.failed) == (2, 0)
        assert server.seen == []


def test_a_mail_that_was_being_sent_is_sent_again_under_its_id(outbox: Outbox, tmp_path: Path):
    """At least once, with a stable id."""
    outbox.put([delivery("a")], now_s=NOW_S)
    (message,) = outbox.messages(1, together=True, limit=9, now_s=NOW_S)
    outbox.mark_sending(message)
    with (
        mail_server() as (server, mail),
        Deliverer(outbox, settings(tmp_path, mail=mail), find_among(mail_to("me@mail.org"))) as d,
    ):
        report = d.run_due(NOW)
        assert (report.recovered, report.sent) == (1, 1)
        assert message.id.encode() in id_of(server.taken[0].content)


def test_a_stylesheet_makes_the_mail(outbox: Outbox, tmp_path: Path):
    outbox.put([delivery("a"), delivery("b")], now_s=NOW_S)
    (tmp_path / "stylesheets").symlink_to(EXAMPLES)
    with (
        mail_server() as (server, mail),
        Deliverer(
            outbox,
            settings(tmp_path, mail=mail),
            find_among(mail_to("me@mail.org", stylesheet="Title.xsl")),
        ) as deliverer,
    ):
        assert deliverer.run_due(NOW).sent == 2
        assert b"Title of a\r\n\r\nTitle of b\r\n" in server.taken[0].content


# --- webhooks -------------------------------------------------------------------------------------


def test_each_item_is_a_call(outbox: Outbox, tmp_path: Path, hook: Receiver):
    outbox.put([delivery("a"), delivery("b")], now_s=NOW_S)
    with Deliverer(outbox, settings(tmp_path, webhook=LOCAL), find_among(call_to(hook.url))) as d:
        assert d.run_due(NOW).sent == 2
    items = [json.loads(body)["data"]["items"] for body in hook.bodies()]
    assert [[each["id"] for each in some] for some in items] == [["a"], ["b"]]
    assert len({headers["webhook-id"] for _, headers, _ in hook.calls}) == 2


def test_with_a_period_each_run_is_a_call(outbox: Outbox, tmp_path: Path, hook: Receiver):
    outbox.put([delivery("a"), delivery("b")], now_s=NOW_S)
    find = find_among(call_to(hook.url, period_s=60))
    with Deliverer(outbox, settings(tmp_path, webhook=LOCAL), find) as deliverer:
        assert deliverer.run_due(later(60)).sent == 2
    (body,) = hook.bodies()
    assert [each["id"] for each in json.loads(body)["data"]["items"]] == ["a", "b"]


def test_a_receiver_that_fails_gets_the_same_call_again(
    outbox: Outbox, tmp_path: Path, hook: Receiver
):
    outbox.put([delivery("a"), delivery("b")], now_s=NOW_S)
    hook.answer = lambda _, body: (500 if b'"id":"a"' in body else 204, {})
    with Deliverer(outbox, settings(tmp_path, webhook=LOCAL), find_among(call_to(hook.url))) as d:
        report = d.run_due(NOW)
        assert (report.sent, report.failed) == (1, 1)
        hook.answer = lambda *_: (204, {})
        assert d.run_due(later(9)).runs == 0
        assert d.run_due(later(10)).sent == 1
    ids = [headers["webhook-id"] for _, headers, _ in hook.calls]
    assert ids[0] == ids[2] != ids[1]
    assert hook.bodies()[0] == hook.bodies()[2]


def test_new_items_do_not_wait_for_one_that_is_refused(
    outbox: Outbox, tmp_path: Path, hook: Receiver
):
    outbox.put([delivery("bad")], now_s=NOW_S)
    hook.answer = lambda _, body: (500 if b'"id":"bad"' in body else 204, {})
    with Deliverer(outbox, settings(tmp_path, webhook=LOCAL), find_among(call_to(hook.url))) as d:
        assert d.run_due(NOW).failed == 1
        outbox.put([delivery("good")], now_s=NOW_S + 1)
        report = d.run_due(later(1))
        assert (report.sent, report.failed) == (1, 0)
        assert d.run_due(later(10)).failed == 1
    assert len(hook.calls) == 3


def test_a_receiver_that_is_away_is_an_attempt_for_all(outbox: Outbox, tmp_path: Path):
    outbox.put([delivery(f"n{number}") for number in range(9)], now_s=NOW_S)
    away = find_among(call_to(f"http://127.0.0.1:{free_port()}/"))
    few = settings(tmp_path, webhook=LOCAL, attempts_max=2, items_per_run=3)
    with Deliverer(outbox, few, away) as deliverer:
        assert deliverer.run_due(NOW).failed == 9
        outbox.put([delivery("new")], now_s=NOW_S + 1)
        assert deliverer.run_due(later(9)).runs == 0
        report = deliverer.run_due(later(10))
        assert (report.failed, report.dead) == (1, 9)


def test_a_retry_does_not_hasten_the_next_digest(outbox: Outbox, tmp_path: Path):
    boundary_s = boundary_after_s(NOW_S, 3600, phase_s(1, 3600)) - NOW_S
    find = find_among(mail_to("me@mail.org", period_s=3600))
    outbox.put([delivery("a")], now_s=NOW_S)
    with mail_server() as (server, mail):
        with Deliverer(outbox, settings(tmp_path, mail=mail), find) as deliverer:
            server.answers["DATA"] = "451 later"
            assert deliverer.run_due(later(boundary_s)).failed == 1
            outbox.put([delivery("b")], now_s=NOW_S + boundary_s + 1)
            server.answers.clear()
            assert deliverer.run_due(later(boundary_s + 10)).sent == 1
            assert deliverer.run_due(later(boundary_s + 20)).runs == 0
            assert deliverer.run_due(later(boundary_s + 3600)).sent == 1
        assert len(server.taken) == 2


def test_waits_double_and_end_in_dead_letters_that_can_be_replayed(
    outbox: Outbox, tmp_path: Path, hook: Receiver
):
    outbox.put([delivery("a")], now_s=NOW_S)
    hook.answer = lambda *_: (500, {})
    at, waits = 0.0, []
    with Deliverer(
        outbox, settings(tmp_path, webhook=LOCAL, attempts_max=4), find_among(call_to(hook.url))
    ) as deliverer:
        while not deliverer.run_due(later(at)).dead:
            entry = DeliverySchedule(outbox).get(1)
            assert entry is not None
            assert entry.due_at_s is not None
            waits.append(entry.due_at_s - NOW_S - at)
            at = entry.due_at_s - NOW_S
        assert waits == [10, 20, 40]
        assert deliverer.run_due(later(at + 9999)).runs == 0
        assert [each.error for each in outbox.dead_letters(1)] == ["the receiver answered (500)"]
        hook.answer = lambda *_: (204, {})
        assert deliverer.replay(1, now=later(at)) == 1
        assert deliverer.run_due(later(at)).sent == 1
        assert deliverer.replay(1, now=later(at)) == 0
    assert len({headers["webhook-id"] for _, headers, _ in hook.calls}) == 1


def test_retry_after_counts_if_it_is_longer(outbox: Outbox, tmp_path: Path, hook: Receiver):
    outbox.put([delivery("a"), delivery("b")], now_s=NOW_S)
    hook.answer = lambda *_: (429, {"retry-after": "300"})
    with Deliverer(outbox, settings(tmp_path, webhook=LOCAL), find_among(call_to(hook.url))) as d:
        assert d.run_due(NOW).failed == 2
        assert len(hook.calls) == 1
        hook.answer = lambda *_: (204, {})
        assert d.run_due(later(299)).runs == 0
        assert d.run_due(later(300)).sent == 2


def test_a_receiver_that_is_gone_gets_nothing_more(outbox: Outbox, tmp_path: Path, hook: Receiver):
    outbox.put([delivery("a"), delivery("b")], now_s=NOW_S)
    hook.answer = lambda *_: (410, {})
    with Deliverer(outbox, settings(tmp_path, webhook=LOCAL), find_among(call_to(hook.url))) as d:
        d.run_due(NOW)
        outbox.put([delivery("c")], now_s=NOW_S + 1)
        assert d.run_due(later(9999)).runs == 0
        assert len(hook.calls) == 1
        assert outbox.count()[DeliveryState.DEAD] == 3
        hook.answer = lambda *_: (204, {})
        assert d.replay(1, now=later(10_000)) == 3
        assert d.run_due(later(10_000)).sent == 3


def test_a_receiver_that_is_away_stops_only_its_own_lane(
    outbox: Outbox, tmp_path: Path, hook: Receiver
):
    away = f"http://127.0.0.2:{free_port()}/"
    outbox.put([delivery("a", number) for number in range(1, 11)], now_s=NOW_S)
    known = [call_to(away, number) for number in range(1, 10)] + [call_to(hook.url, 10)]
    with Deliverer(outbox, settings(tmp_path, webhook=LOCAL), find_among(*known)) as deliverer:
        report = deliverer.run_due(NOW)
        assert report.sent == 1
        assert 1 <= report.failed <= 2
        assert report.unfinished >= 7
        # The others are due still.
        assert len(DeliverySchedule(outbox).due(NOW_S, limit=99)) >= 7


def test_a_slow_receiver_does_not_hold_up_the_others(
    outbox: Outbox, tmp_path: Path, hook: Receiver
):
    with receiver() as other:

        def slow(*_: object) -> tuple[int, dict[str, str]]:
            hook.in_call.set()
            hook.released.wait(10)
            return 204, {}

        def fast(*_: object) -> tuple[int, dict[str, str]]:
            # The slow one is only let go when all the others have had their call.
            if len(other.calls) == 20:
                hook.released.set()
            return 204, {}

        hook.answer, other.answer = slow, fast
        there = other.url.replace("127.0.0.1", "localhost")
        known = [call_to(hook.url, number) for number in range(1, 6)]
        known += [call_to(there, number) for number in range(6, 26)]
        outbox.put([delivery("a", each.id) for each in known], now_s=NOW_S)
        allowed = settings(tmp_path, webhook=LOCAL)
        with Deliverer(outbox, allowed, find_among(*known)) as deliverer:
            assert deliverer.run_due(NOW).sent == 25
        assert hook.released.is_set()


def test_private_addresses_are_refused_by_default(outbox: Outbox, tmp_path: Path, hook: Receiver):
    outbox.put([delivery("a")], now_s=NOW_S)
    public = settings(tmp_path, webhook=WebhookSettings(key=b"key"))
    with Deliverer(outbox, public, find_among(call_to(hook.url))) as deliverer:
        assert deliverer.run_due(NOW).dead == 1
    assert hook.calls == []
    assert "loopback" in outbox.dead_letters()[0].error


# --- periods, people, stylesheets, stopping -------------------------------------------------------


def test_a_period_gathers_and_a_pause_makes_no_burst(outbox: Outbox, tmp_path: Path):
    console = io.StringIO()
    find = find_among(PushSubscription(1, 1, "Rock", Transport.CONSOLE, period_s=3600))
    boundary_s = boundary_after_s(NOW_S, 3600, phase_s(1, 3600)) - NOW_S
    with Deliverer(outbox, settings(tmp_path, console=console), find) as deliverer:
        outbox.put([delivery("a")], now_s=NOW_S)
        report = deliverer.run_due(NOW)
        assert (report.runs, report.postponed) == (0, 1)
        outbox.put([delivery("b")], now_s=NOW_S + 1)
        assert deliverer.run_due(later(boundary_s - 1)).runs == 0
        assert deliverer.run_due(later(boundary_s)).sent == 2
    # Items that came before a pause of many periods are one run, in another process.
    outbox.put([delivery("c")], now_s=NOW_S + boundary_s + 1)
    with Deliverer(outbox, settings(tmp_path, console=console), find) as deliverer:
        report = deliverer.run_due(later(boundary_s + 50 * 3600))
        assert (report.runs, report.sent) == (1, 1)
        assert deliverer.run_due(later(boundary_s + 50 * 3600)).runs == 0
    assert len(console.getvalue().splitlines()) == 3


def test_who_has_unsubscribed_gets_nothing(outbox: Outbox, tmp_path: Path):
    outbox.put([delivery("a", 5)], now_s=NOW_S)
    with Deliverer(outbox, settings(tmp_path), find_among()) as deliverer:
        assert deliverer.run_due(NOW).dead == 1
        assert deliverer.run_due(later(1)).dead == 0
    assert outbox.dead_letters(5)[0].error == "nobody is subscribed any more"


def test_a_bug_for_one_does_not_stop_the_others(
    outbox: Outbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from headgate.deliver import run_subscription

    real = run_subscription.entry_of

    def fail(item: object, free: object = None) -> object:
        if getattr(item, "id", "") == "bad":
            raise ZeroDivisionError("a bug")
        return real(item, free)  # type: ignore[arg-type]

    monkeypatch.setattr(run_subscription, "entry_of", fail)
    outbox.put([delivery("bad", 1), delivery("good", 2)], now_s=NOW_S)
    console = io.StringIO()
    known = [PushSubscription(number, 1, "Rock", Transport.CONSOLE) for number in (1, 2)]
    with Deliverer(outbox, settings(tmp_path, console=console), find_among(*known)) as deliverer:
        report = deliverer.run_due(NOW)
    assert (report.sent, report.failed) == (1, 1)
    assert report.errors[0].error == "ZeroDivisionError: a bug"
    assert "good" in console.getvalue()


def test_a_broken_stylesheet_fails_its_own_subscription_only(outbox: Outbox, tmp_path: Path):
    sheets = tmp_path / "stylesheets"
    sheets.mkdir()
    head = '<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">'
    choosy = (
        f'{head}<xsl:template match="/item[@id=\'bad\']" priority="2">'
        '<xsl:message terminate="yes">no'
        '</xsl:message></xsl:template><xsl:template match="/item"><p>fine</p></xsl:template>'
        "</xsl:stylesheet>"
    )
    loop = (
        f'{head}<xsl:template match="/"><xsl:call-template name="a"/><xsl:call-template name="a"/>'
        '</xsl:template><xsl:template name="a"><xsl:param name="n" select="50"/>'
        '<xsl:if test="$n &gt; 0"><xsl:call-template name="a"><xsl:with-param name="n" '
        'select="$n - 1"/></xsl:call-template><xsl:call-template name="a"><xsl:with-param name="n" '
        'select="$n - 1"/></xsl:call-template></xsl:if></xsl:template></xsl:stylesheet>'
    )
    (sheets / "choosy.xsl").write_text(choosy)
    (sheets / "loop.xsl").write_text(loop)
    known = [
        file_to("1.atom", 1, stylesheet="choosy.xsl"),
        file_to("2.atom", 2, stylesheet="loop.xsl"),
        file_to("3.atom", 3, stylesheet="none.xsl"),
        file_to("4.atom", 4),
    ]
    names = ("bad", "good")
    outbox.put([delivery(name, each.id) for each in known for name in names], now_s=NOW_S)
    quick = settings(tmp_path, transform=TransformLimits(wall_s=1.0, cpu_s=1.0))
    with Deliverer(outbox, quick, find_among(*known)) as deliverer:
        report = deliverer.run_due(NOW)
    assert (report.sent, report.failed, report.files_written) == (3, 5, 2)
    errors = {each.subscription: each.error for each in report.errors}
    assert "choosy.xsl: no" in errors[1]
    assert "loop.xsl: it takes" in errors[2]
    assert "none.xsl: there is no such stylesheet" in errors[3]
    assert b"fine" in (tmp_path / "out/1.atom").read_bytes()
    assert b"Title of bad" not in (tmp_path / "out/1.atom").read_bytes()
    assert b"Title of bad" in (tmp_path / "out/4.atom").read_bytes()


def test_stopping_lets_a_message_end_and_begins_no_other(
    outbox: Outbox, tmp_path: Path, hook: Receiver
):
    def slow(*_: object) -> tuple[int, dict[str, str]]:
        hook.in_call.set()
        hook.released.wait(10)
        return 204, {}

    hook.answer = slow
    outbox.put([delivery(f"n{number}") for number in range(9)], now_s=NOW_S)
    deliverer = Deliverer(outbox, settings(tmp_path, webhook=LOCAL), find_among(call_to(hook.url)))
    reports = []
    thread = threading.Thread(target=lambda: reports.append(deliverer.run_due(NOW)))
    thread.start()
    assert hook.in_call.wait(10)
    deliverer.stop()
    hook.released.set()
    thread.join(10)
    deliverer.close()
    assert reports[0].sent == 1
    assert outbox.count() | {DeliveryState.FAILED: 0} == {
        DeliveryState.WAITING: 8,
        DeliveryState.SENDING: 0,
        DeliveryState.SENT: 1,
        DeliveryState.FAILED: 0,
        DeliveryState.DEAD: 0,
    }  # fmt: skip
    with Deliverer(outbox, settings(tmp_path, webhook=LOCAL), find_among(call_to(hook.url))) as d:
        assert d.run_due(NOW).sent == 8
    assert len(hook.calls) == 9


def test_a_large_run_goes_on_at_once(outbox: Outbox, tmp_path: Path):
    outbox.put([delivery(f"n{number}") for number in range(5)], now_s=NOW_S)
    console = io.StringIO()
    find = find_among(PushSubscription(1, 1, "Rock", Transport.CONSOLE, period_s=60))
    small = settings(tmp_path, console=console, items_per_run=2)
    with Deliverer(outbox, small, find) as deliverer:
        assert [deliverer.run_due(later(60)).sent for _ in range(4)] == [2, 2, 1, 0]
    titles = [line.split("  ")[2] for line in console.getvalue().splitlines()]
    assert titles == [f"Title of n{number}" for number in range(5)]


def test_what_is_old_is_pruned(outbox: Outbox, tmp_path: Path):
    outbox.put([delivery("a", 1), delivery("a", 2)], now_s=NOW_S)
    known = [file_to("a.rss", 1), PushSubscription(2, 1, "Rock", Transport.CONSOLE)]
    quiet = settings(tmp_path, console=io.StringIO())
    with Deliverer(outbox, quiet, find_among(*known)) as deliverer:
        deliverer.run_due(NOW)
        assert deliverer.prune(now=later(29 * 86_400), files=[1]) == 0
        assert deliverer.prune(now=later(31 * 86_400), files=[1]) == 1
    assert outbox.latest(1, limit=1)[0].delivery == ItemDelivery(1, 1, "Rock", item("a"))


def test_an_outbox_that_fails_stops_everything(
    outbox: Outbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    outbox.put([delivery("a")], now_s=NOW_S)

    def fail(*_: object, **__: object) -> None:
        raise StateError("the disk is full")

    with Deliverer(outbox, settings(tmp_path), find_among(file_to("a.rss"))) as deliverer:
        with monkeypatch.context() as patch:
            patch.setattr(Outbox, "mark_sent", fail)
            with pytest.raises(StateError):
                deliverer.run_due(NOW)
        assert deliverer.run_due(NOW).sent == 1
