"""`account reader-password`."""

from __future__ import annotations

from tests.cli.headgate_command import Run

from headgate.catalog.catalog import Catalog


def test_a_reader_password_is_shown_once_and_revoked(headgate: Run) -> None:
    headgate("tenant", "add", "acme")
    headgate("account", "add", "ada")
    make = ("account", "reader-password", "ada", "--tenant", "acme")
    code, _, err = headgate(*make)
    assert (code, "no member" in err) == (3, True)
    headgate("account", "join", "ada", "acme", "--scope", "read")
    password, told = headgate(*make)[1].splitlines()
    assert told == "for ada/acme; it is not shown again"
    with Catalog.open("headgate.db") as catalog:
        assert catalog.reader_passwords.sign_in("ada", password) is not None
        assert password not in headgate("audit", "--tenant", "acme")[1]
        assert headgate(*make, "--revoke")[0] == 0
        assert catalog.reader_passwords.sign_in("ada", password) is None
    assert headgate(*make, "--revoke")[0] == 3
