"""Mail: one digest for each run, as text and HTML, that the reader can end with one click.

    connect ─ EHLO ─ STARTTLS ─ AUTH ─ MAIL ─ RCPT ─┤ mark as sending ├─ DATA ─ text ─ 250 ─┤ sent ├
    └── anything wrong here: not sent, tried again ─┘                  └── no answer: not known ──┘

*At least once.* Between the last byte of a mail and its 250 the server may take it without our
knowledge, and SMTP has no remedy. A mail whose answer was lost, or that was being sent when the
process died, is therefore sent again, with the same Message-ID and the same items; servers that
compare ids show it once. In all other cases it is sent once: a mail with a 250 is never sent again,
and one that was refused (4xx, 5xx) or never reached DATA was not taken.

    4xx                 tried again later         5xx for the reader   not tried again
    5xx for the sender  tried again: it is the operator who has to change something

Headers cannot be injected: every header is made of one line, the address is one address.
The SMTP server is the operator's, so its address may be private.
"""

from __future__ import annotations

import smtplib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP as SMTP_POLICY
from enum import StrEnum
from html import escape

from headgate.deliver.clean_text import one_line, safe_link
from headgate.deliver.entry import OutputDocument
from headgate.deliver.errors import OutputError
from headgate.deliver.records import PushSubscription
from headgate.deliver.render import render_html, render_text
from headgate.model.errors import alternatives, printable

ADDRESS_LENGTH_MAX = 254
MAIL_POLICY = SMTP_POLICY.clone(cte_type="7bit")  # not every server takes eight bits


class Tls(StrEnum):
    """With `starttls` a server that does not offer it is refused."""

    NONE = "none"
    STARTTLS = "starttls"
    TLS = "tls"


@dataclass(frozen=True, slots=True)
class MailSettings:
    """How to reach the SMTP server, and within which time."""

    host: str
    port: int = 587
    tls: Tls = Tls.STARTTLS
    user: str = ""
    password: str = field(default="", repr=False)
    sender: str = "headgate@localhost"
    step_s: float = 20.0
    total_s: float = 60.0

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> MailSettings | None:
        """None where no server is named."""
        host = environment.get("HEADGATE_SMTP_HOST", "")
        if not host:
            return None
        tls = environment.get("HEADGATE_SMTP_TLS", "starttls")
        if tls not in set(Tls):
            raise OutputError(f"HEADGATE_SMTP_TLS is {alternatives(list(Tls))}, not '{tls}'")
        port = environment.get("HEADGATE_SMTP_PORT", "587")
        if not (port.isascii() and port.isdigit() and 0 < int(port) < 65_536):
            raise OutputError(f"HEADGATE_SMTP_PORT is no port: '{port}'")
        return cls(
            host=host,
            port=int(port),
            tls=Tls(tls),
            user=environment.get("HEADGATE_SMTP_USER", ""),
            password=environment.get("HEADGATE_SMTP_PASSWORD", ""),
            sender=environment.get("HEADGATE_MAIL_FROM", "headgate@localhost"),
        )


def checked_address(text: str) -> str:
    """One address in ASCII, or an error.

    >>> checked_address("me@mail.org")
    'me@mail.org'
    """
    try:
        address = Address(addr_spec=text)
        domain = address.domain.encode("idna").decode() if address.domain else ""
    except (ValueError, IndexError, UnicodeError) as error:
        raise _no_address(text) from error
    except Exception as error:  # the parser of the standard library raises its own defects
        raise _no_address(text) from error
    plain = f"{address.username}@{domain}"
    usable = address.username and domain and plain.isascii() and plain.isprintable()
    if not usable or len(plain) > ADDRESS_LENGTH_MAX or any(each in plain for each in ' ,;<>()"\\'):
        raise _no_address(text)
    return plain


def _no_address(text: str) -> OutputError:
    return OutputError(f"'{printable(text)[:80]}' is no mail address", lasting=True)


def make_mail(
    subscription: PushSubscription,
    document: OutputDocument,
    *,
    message_id: str,
    sender: str,
    now: datetime,
    unsubscribe_url: str | None = None,
) -> EmailMessage:
    """The digest. The same message id and entries give the same mail, but for its date."""
    address = checked_address(subscription.target)
    count = len(document.entries)
    subject = document.entries[0].title if count == 1 else f"{count} new items"
    domain = sender.rpartition("@")[2] or "localhost"
    mail = EmailMessage(policy=MAIL_POLICY)
    mail["From"] = Address("Headgate", addr_spec=sender)
    mail["To"] = address
    mail["Subject"] = one_line(f"{subscription.feed}: {subject}", 200)
    mail["Date"] = now
    mail["Message-ID"] = f"<{message_id}@{domain}>"
    mail["List-Id"] = f"<subscription-{subscription.id}.{domain}>"
    mail["Auto-Submitted"] = "auto-generated"
    link = unsubscribe_url and safe_link(unsubscribe_url)
    if link:
        mail["List-Unsubscribe"] = f"<{link}>"
        if link.startswith("https:"):  # RFC 8058 §3.1
            mail["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    text_foot = f"-- \nUnsubscribe: {link}" if link else ""
    html_foot = f'<hr><p><a href="{escape(link)}">Unsubscribe</a></p>\n' if link else ""
    mail.set_content(render_text(document, foot=text_foot))
    mail.add_alternative(render_html(document, foot=html_foot), subtype="html")
    mail.set_boundary(f"={message_id}=")
    return mail


def send_mail(
    settings: MailSettings, mail: EmailMessage, *, before_data: Callable[[], None]
) -> None:
    """Returns when the server has taken it. `before_data` is called when only DATA is left."""
    content = mail.as_bytes()
    try:
        with _connected(settings) as smtp:
            _answer_to(smtp.mail(settings.sender), "the sender", is_reader=False)
            _answer_to(smtp.rcpt(str(mail["To"])), "the reader", is_reader=True)
            before_data()
            _send_data(smtp, content)
    except (smtplib.SMTPException, OSError) as error:
        raise OutputError(f"the mail server failed: {error}", unreachable=True) from error


def _send_data(smtp: smtplib.SMTP, content: bytes) -> None:
    answer: tuple[int, bytes | str]
    try:
        answer = smtp.data(content)
    except smtplib.SMTPDataError as error:  # no 354: nothing was sent
        answer = (error.smtp_code, error.smtp_error)
    except (smtplib.SMTPException, OSError) as error:
        raise OutputError(
            f"the mail server did not say whether it took the mail: {error}",
            unreachable=True,
            ambiguous=True,
        ) from error
    _answer_to(answer, "the mail", is_reader=True)


def _answer_to(answer: tuple[int, bytes | str], what: str, *, is_reader: bool) -> None:
    code, text = answer
    if 200 <= code < 300:
        return
    shown = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    raise OutputError(
        f"the mail server refused {what}: {code} {one_line(shown, 200)}",
        lasting=is_reader and code >= 500,
        busy=code < 500,
        unreachable=code == 421 or not is_reader,
    )


@contextmanager
def _connected(settings: MailSettings) -> Iterator[smtplib.SMTP]:
    """A session that is ready for a mail, and that ends when its time is up."""
    context = None if settings.tls is Tls.NONE else ssl.create_default_context()
    if settings.tls is Tls.TLS:
        smtp: smtplib.SMTP = smtplib.SMTP_SSL(timeout=settings.step_s, context=context)
    else:
        smtp = smtplib.SMTP(timeout=settings.step_s)
    # The name that TLS proves. Given to the constructor it would connect, before there is a timer.
    smtp._host = settings.host  # type: ignore[attr-defined]
    timer = threading.Timer(settings.total_s, _cut, [smtp])
    timer.daemon = True
    timer.start()
    try:
        smtp.connect(settings.host, settings.port)
        smtp.ehlo_or_helo_if_needed()
        if settings.tls is Tls.STARTTLS:
            smtp.starttls(context=context)
            smtp.ehlo()
        if settings.user:
            smtp.login(settings.user, settings.password)
        yield smtp
        with suppress(smtplib.SMTPException, OSError):
            smtp.quit()
    finally:
        timer.cancel()
        smtp.close()


def _cut(smtp: smtplib.SMTP) -> None:
    """A server that answers a byte at a time would never run into the limit of one step."""
    with suppress(OSError, AttributeError):
        assert smtp.sock is not None
        smtp.sock.shutdown(socket.SHUT_RDWR)
