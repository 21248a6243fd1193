"""Mails: well-formed, with nothing injected, and once, by a real SMTP server in every mood."""

from __future__ import annotations

import contextlib
import email
import socket
import time
from email.message import EmailMessage
from email.policy import default

import pytest
from hypothesis import given
from tests.deliver.servers import free_port, mail_server, silent_server
from tests.deliver.things import NOW, any_text, item, items

from headgate.deliver.entry import OutputDocument, entry_of
from headgate.deliver.errors import OutputError
from headgate.deliver.output_mail import (
    MailSettings,
    Tls,
    checked_address,
    make_mail,
    send_mail,
)
from headgate.deliver.records import PushSubscription, Transport
from headgate.model.items import Item

UNSUBSCRIBE = "https://a.org/unsubscribe?ticket=x"


def subscription(**changes: object) -> PushSubscription:
    plain: dict[str, object] = {"target": "me@mail.org"}
    return PushSubscription(7, 1, "Rock", Transport.MAIL, **(plain | changes))  # type: ignore[arg-type]


def mail_of(
    *some: Item, to: PushSubscription | None = None, unsubscribe_url: str | None = UNSUBSCRIBE
) -> EmailMessage:
    document = OutputDocument("d", "Rock", tuple(entry_of(each) for each in some))
    return make_mail(
        to or subscription(),
        document,
        message_id="abc",
        sender="news@a.org",
        now=NOW,
        unsubscribe_url=unsubscribe_url,
    )


def read(content: bytes) -> EmailMessage:
    found = email.message_from_bytes(content, policy=default)
    assert isinstance(found, EmailMessage)
    return found


def test_a_mail_has_text_html_and_its_headers():
    mail = read(mail_of(item("a"), item("b")).as_bytes())
    assert mail["Subject"] == "Rock: 2 new items"
    assert mail["To"] == "me@mail.org"
    assert mail["Message-ID"] == "<abc@a.org>"
    assert mail["List-Unsubscribe"] == f"<{UNSUBSCRIBE}>"
    assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert mail["Auto-Submitted"] == "auto-generated"
    assert mail.get_content_type() == "multipart/alternative"
    text, page = (part.get_content() for part in mail.iter_parts())
    assert "Title of a" in text
    assert UNSUBSCRIBE in text
    assert '<h2><a href="https://muse.mu/b">Title of b</a></h2>' in page
    assert not mail.defects


def test_one_click_needs_https():
    mail = mail_of(item(), unsubscribe_url="http://a.org/u")
    assert mail["List-Unsubscribe"] == "<http://a.org/u>"
    assert mail["List-Unsubscribe-Post"] is None
    assert mail_of(item(), unsubscribe_url=None)["List-Unsubscribe"] is None


def test_the_same_mail_has_the_same_bytes():
    assert mail_of(item("a")).as_bytes() == mail_of(item("a")).as_bytes()


@given(items, any_text)
def test_nothing_is_injected(item: Item, feed: str):
    to = PushSubscription(7, 1, feed, Transport.MAIL, "me@mail.org")
    content = mail_of(item, to=to, unsubscribe_url=None).as_bytes()
    mail = read(content)
    assert sorted(mail.keys()) == [
        "Auto-Submitted",
        "Content-Type",
        "Date",
        "From",
        "List-Id",
        "MIME-Version",
        "Message-ID",
        "Subject",
        "To",
    ]
    assert not mail.defects
    assert [part.get_content_type() for part in mail.walk()] == [
        "multipart/alternative",
        "text/plain",
        "text/html",
    ]
    assert content.isascii()
    assert all(len(line) <= 998 for line in content.split(b"\r\n"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "me",
        "me@",
        "@a.org",
        "me@a.org\r\nBcc: all@a.org",
        "me@a.org, you@a.org",
        "me@a.org>",
        "<me@a.org>",
        "Me <me@a.org>",
        "me@a.org you@a.org",
        '"a b"@a.org',
        "m\0e@a.org",
        "é@a.org",
        "me@" + "a" * 300 + ".org",
        "me@a..org",
        "\ud800@a.org",
    ],
)
def test_what_is_no_address_is_refused(text: str):
    with pytest.raises(OutputError, match="is no mail address") as caught:
        checked_address(text)
    assert caught.value.lasting


@given(any_text)
def test_any_text_is_an_address_or_refused(text: str):
    with contextlib.suppress(OutputError):
        assert checked_address(text + "@a.org").isascii()


def test_a_domain_may_be_international():
    assert checked_address("me@bücher.example") == "me@xn--bcher-kva.example"


class Sending:
    """Whether the mail was marked as being sent."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


def test_a_mail_is_taken():
    with mail_server() as (server, settings):
        sending = Sending()
        send_mail(settings, mail_of(item("é")), before_data=sending)
    assert sending.count == 1
    (envelope,) = server.taken
    assert envelope.mail_from == "news@a.org"
    assert envelope.rcpt_tos == ["me@mail.org"]
    assert read(envelope.content)["Message-ID"] == "<abc@a.org>"


@pytest.mark.parametrize(
    ("step", "answer", "lasting", "sending_count"),
    [
        ("RCPT", "451 try later", False, 0),
        ("RCPT", "550 no such user", True, 0),
        ("DATA", "451 try later", False, 1),
        ("DATA", "554 looks like spam", True, 1),
    ],
)
def test_a_refusal_is_no_ambiguity(step: str, answer: str, lasting: bool, sending_count: int):
    with mail_server() as (server, settings):
        server.answers[step] = answer
        sending = Sending()
        with pytest.raises(OutputError, match=answer[:3]) as caught:
            send_mail(settings, mail_of(item()), before_data=sending)
    assert (caught.value.lasting, caught.value.ambiguous) == (lasting, False)
    assert sending.count == sending_count
    assert server.taken == []


def test_a_connection_that_ends_after_data_is_ambiguous():
    with mail_server() as (server, settings):
        server.drop_after_data = True
        with pytest.raises(OutputError, match="did not say") as caught:
            send_mail(settings, mail_of(item()), before_data=Sending())
    assert caught.value.ambiguous
    assert server.dropped == 1


def test_a_server_that_is_not_there_is_unreachable():
    settings = MailSettings("127.0.0.1", free_port(), tls=Tls.NONE)
    with pytest.raises(OutputError) as caught:
        send_mail(settings, mail_of(item()), before_data=Sending())
    assert caught.value.unreachable
    assert not caught.value.ambiguous


def test_a_server_that_hangs_is_left():
    with silent_server() as port:
        settings = MailSettings("127.0.0.1", port, tls=Tls.NONE, step_s=0.2)
        with pytest.raises(OutputError) as caught:
            send_mail(settings, mail_of(item()), before_data=Sending())
    assert caught.value.unreachable


def test_a_server_that_answers_byte_by_byte_is_left():
    def drip(connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection.sendall(b"2")
                time.sleep(0.05)

    with silent_server(drip) as port:
        settings = MailSettings("127.0.0.1", port, tls=Tls.NONE, step_s=5, total_s=0.5)
        began = time.monotonic()
        with pytest.raises(OutputError) as caught:
            send_mail(settings, mail_of(item()), before_data=Sending())
    assert caught.value.unreachable
    assert time.monotonic() - began < 4


def test_starttls_is_not_given_up():
    """A server without it gets neither a password nor a mail."""
    with mail_server() as (server, settings):
        strict = MailSettings(settings.host, settings.port, user="me", password="secret")
        with pytest.raises(OutputError, match="STARTTLS"):
            send_mail(strict, mail_of(item()), before_data=Sending())
    assert server.seen == []


def test_settings_come_from_the_environment():
    assert MailSettings.from_environment({}) is None
    found = MailSettings.from_environment(
        {
            "HEADGATE_SMTP_HOST": "mail.a.org",
            "HEADGATE_SMTP_PORT": "465",
            "HEADGATE_SMTP_TLS": "tls",
            "HEADGATE_SMTP_USER": "me",
            "HEADGATE_SMTP_PASSWORD": "secret",
        }
    )
    assert found == MailSettings("mail.a.org", 465, tls=Tls.TLS, user="me", password="secret")
    assert "secret" not in repr(found)
    for wrong in ({"HEADGATE_SMTP_TLS": "ssl"}, {"HEADGATE_SMTP_PORT": "x"}):
        with pytest.raises(OutputError):
            MailSettings.from_environment({"HEADGATE_SMTP_HOST": "a"} | wrong)


def test_tls_is_not_given_up():
    with mail_server() as (server, settings):
        strict = MailSettings(settings.host, settings.port, tls=Tls.TLS, step_s=2)
        with pytest.raises(OutputError) as caught:
            send_mail(strict, mail_of(item()), before_data=Sending())
    assert caught.value.unreachable
    assert server.seen == []
