"""The commands: output, exit codes and errors."""

from __future__ import annotations

import json
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.headgate_command import Run

EXAMPLE = Path(__file__).parents[2] / "examples" / "papers.feeds"


def script(text: str) -> str:
    Path("script.feeds").write_text(text, encoding="utf-8")
    return "script.feeds"


def test_check_accepts_the_example_and_changes_nothing(headgate: Run) -> None:
    code, out, _ = headgate("check", str(EXAMPLE))
    assert code == 0
    assert "24 statements are right" in out
    assert not Path("headgate.db").exists()


def test_every_wrong_statement_is_reported_with_its_place(headgate: Run) -> None:
    code, out, err = headgate("check", script("show fees;\ncreate fed X from Y;\nshow feeds;"))
    assert (code, out) == (1, "")
    assert "script.feeds: line 1, column 6: 'fees' is no listing" in err
    assert "script.feeds: line 2, column 8: expected 'feed', found 'fed'" in err


def test_an_unknown_name_is_shown_in_its_line(headgate: Run) -> None:
    code, _, err = headgate("check", script("show feeds;\ncreate feed X\n  from MuseNews;"))
    assert code == 1
    assert "line 3, column 8: there is no source or feed 'MuseNews'" in err
    assert "\n    from MuseNews;\n         ^" in err


def test_errors_as_json(headgate: Run) -> None:
    code, out, _ = headgate("check", script("show fees;"), "--json")
    (error,) = json.loads(out)["errors"]
    assert code == 1
    assert (error["line"], error["column"], error["file"]) == (1, 6, "script.feeds")


def test_a_feed_without_a_plan_is_refused(headgate: Run) -> None:
    doubling = "register stream F0 from json 'x' (a int);\n" + "".join(
        f"create feed F{n} from (F{n - 1} as $l | F{n - 1} as $r) "
        f"where $l[a > {n}] and $r[a < {-n}];\n"
        for n in range(1, 20)
    )
    code, _, err = headgate("check", script(doubling))
    assert code == 3
    assert "feed 'F14' would read 16,384 sources" in err


def test_apply_show_drop(headgate: Run) -> None:
    assert headgate("apply", str(EXAMPLE))[0] == 0
    code, out, _ = headgate("show", "feeds")
    assert code == 0
    assert "create feed RockConcertStream\n  from (FriendsFacebookStream" in out
    code, _, err = headgate("drop", "feed", "RockConcertStream")
    assert code == 3
    assert "used by feed MusePhotoStream and 2 subscriptions" in err
    code, out, _ = headgate("drop", "feed", "WeekendTrips")
    assert (code, out) == (0, "dropped feed WeekendTrips\n")
    counts = json.loads(headgate("show", "--json")[1])
    assert counts == {"sources": 12, "feeds": 5, "operators": 2, "subscriptions": 3, "version": 2}


def test_what_is_shown_can_be_applied_elsewhere(headgate: Run) -> None:
    headgate("apply", str(EXAMPLE))
    listings = ("operators", "sources", "feeds", "advertisements")
    shown = "".join(headgate("show", listing)[1] for listing in listings)
    code, _, err = headgate("apply", script(shown), "--catalog", "copy.db")
    assert (code, err) == (0, "")
    assert headgate("show", "feeds", "--catalog", "copy.db") == headgate("show", "feeds")


def test_a_script_is_applied_whole_or_not_at_all(headgate: Run) -> None:
    text = "register stream A from json 'a' (x int);\nsubscribe to B output console;"
    assert headgate("apply", script(text))[0] == 1
    assert json.loads(headgate("show", "--json")[1])["version"] == 0


def test_subscribe_renew_and_unsubscribe(headgate: Run) -> None:
    headgate("apply", str(EXAMPLE))
    arguments = ("--output", "mail", "--to", "me@mail.org", "--every", "3 hours", "--for", "2 days")
    code, out, _ = headgate("subscribe", "Mobs", *arguments)
    assert code == 0
    ticket = re.search(r"ticket   (\S+)", out)
    assert ticket is not None
    assert headgate("renew", ticket[1], "--for", "30 days")[0] == 0
    assert headgate("unsubscribe", ticket[1])[0] == 0
    code, _, err = headgate("unsubscribe", ticket[1])
    assert code == 3
    assert ticket[1] not in err


def test_tickets_can_go_to_a_private_file(headgate: Run) -> None:
    code, out, _ = headgate("apply", str(EXAMPLE), "--tickets", "tickets.txt")
    assert code == 0
    lines = Path("tickets.txt").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 3
    tickets = [each for line in lines for each in line.split()]
    assert not any(ticket in out for ticket in tickets)
    assert stat.S_IMODE(Path("tickets.txt").stat().st_mode) == 0o600
    assert headgate("apply", str(EXAMPLE), "--tickets", "tickets.txt")[0] == 2


def test_the_secret_of_a_webhook_is_shown_once_and_rotated(headgate: Run) -> None:
    headgate("apply", str(EXAMPLE))
    code, out, _ = headgate("subscribe", "Mobs", "--output", "webhook", "--to", "https://a.org/x")
    assert code == 0
    ticket, secret = (re.search(rf"{name}   (\S+)", out)[1] for name in ("ticket", "secret"))
    assert secret.startswith("whsec_")
    assert secret not in headgate("show", "subscriptions", "--json")[1]
    code, out, _ = headgate("rotate", ticket)
    assert code == 0
    rotated = re.search(r"secret   (whsec_\S+)", out)[1]
    assert rotated != secret
    code, out, _ = headgate("rotate", ticket, "--json")
    assert json.loads(out)["secret"] not in (secret, rotated)
    code, _, err = headgate("rotate", ticket + "x")
    assert code == 3
    assert ticket not in err


def test_a_subscription_is_paused_and_resumed(headgate: Run) -> None:
    headgate("apply", str(EXAMPLE))
    out = headgate("subscribe", "Mobs", "--output", "webhook", "--to", "https://a.org/x")[1]
    number = re.search(r"ticket   ([0-9]+)-", out)[1]
    assert "is paused" in headgate("pause", number)[1]
    assert "was already paused" in headgate("pause", number)[1]
    assert not json.loads(headgate("pause", number, "--json")[1])["changed"]
    assert f"resumed subscription {number}" in headgate("resume", number)[1]
    assert "is not paused" in headgate("resume", number)[1]
    assert headgate("pause", "999")[0] == 3


def test_secrets_go_to_the_private_file_too(headgate: Run) -> None:
    Path("hook.feeds").write_text(
        "register feed https://a.org/news as News;"
        "subscribe to News output webhook 'https://a.org/x';"
    )
    code, out, _ = headgate("apply", "hook.feeds", "--tickets", "tickets.txt")
    assert code == 0
    ticket, secret = Path("tickets.txt").read_text(encoding="utf-8").split()
    assert secret.startswith("whsec_")
    assert ticket not in out
    assert secret not in out
    found = json.loads(headgate("apply", "hook.feeds", "--json")[1])
    assert found[-1]["secret"].startswith("whsec_")


def test_a_mail_waits_until_the_operator_confirms_it(headgate: Run) -> None:
    headgate("apply", str(EXAMPLE))
    _, out, _ = headgate("subscribe", "Mobs", "--output", "mail", "--to", "me@a.org", "--json")
    made = json.loads(out)
    assert made["pending"] is True
    number = str(made["subscription"])
    assert "waits for confirmation" in headgate("show", "subscriptions")[1]
    assert headgate("confirm", number)[1] == f"subscription {number} is confirmed\n"
    assert headgate("confirm", number)[1] == f"subscription {number} was already confirmed\n"
    assert headgate("confirm", "999")[0] == 3
    _, out, _ = headgate("subscribe", "Mobs", "--output", "mail", "--to", "me@a.org", "--json")
    assert "pending" not in json.loads(out)


@pytest.mark.parametrize(
    "wrong", [("--address", "8080"), ("--address", "a:b"), ("--public-url", "ftp://a.org")]
)
def test_serve_refuses_what_cannot_work(headgate: Run, wrong: tuple[str, str]) -> None:
    assert headgate("serve", *wrong)[0] == 2


def test_an_invalid_statement_made_of_options_is_shown_in_the_error(headgate: Run) -> None:
    headgate("apply", str(EXAMPLE))
    code, _, err = headgate("subscribe", "RockConcertStraem")
    assert code == 1
    assert "  subscribe to RockConcertStraem output console;\n               ^" in err
    assert "did you mean 'RockConcertStream'?" in err


def test_pages(headgate: Run) -> None:
    headgate("apply", str(EXAMPLE))
    code, out, _ = headgate("show", "subscriptions", "--limit", "2")
    assert code == 0
    assert "2 of 3 subscriptions; go on with --after 2" in out
    assert "Mobs" in headgate("show", "subscriptions", "--after", "2")[1]
    assert headgate("show", "subscriptions", "--after", "x")[0] == 2


def test_explain(headgate: Run) -> None:
    code, out, _ = headgate("explain", "MusePhotoStream", "--script", str(EXAMPLE))
    assert code == 0
    assert "r0 := ω last 3 months" in out
    code, out, _ = headgate("explain", "--script", str(EXAMPLE), "--json")
    assert set(json.loads(out)) == {"before", "after", "payload_split"}
    assert headgate("explain", "Nothing", "--script", str(EXAMPLE))[0] == 3


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("check", "missing.feeds"), 2),
        (("show", "everything"), 2),
        (("subscribe", "X", "--every", "3 hors"), 2),
        (("show", "--catalog", "postgresql://u:pass-word@127.0.0.1:1/x"), 4),
        (("show", "--catalog", "/"), 4),
        (("renew", "1-x"), 3),
        (("--version",), 0),
        (("--help",), 0),
        ((), 2),
    ],
)
def test_exit_codes(headgate: Run, arguments: tuple[str, ...], code: int) -> None:
    found, out, err = headgate(*arguments)
    assert found == code
    assert "Traceback" not in out + err
    assert "pass-word" not in out + err


def test_bytes_that_are_no_text_are_refused(headgate: Run) -> None:
    Path("script.feeds").write_bytes(b"show feeds;\xff")
    code, _, err = headgate("check", "script.feeds")
    assert code == 2
    assert "byte 11 is not UTF-8" in err


def test_no_control_character_reaches_the_terminal(headgate: Run) -> None:
    text = "register stream `a\x1b[2J` from json 'x' (a int); show \x1b[2J;"
    code, out, err = headgate("check", script(text))
    assert code == 1
    assert "\x1b" not in out + err


def test_check_lists_all_errors_but_not_those_that_follow_from_others(headgate: Run) -> None:
    wrong = """register feed as X;
register stream T from post (a int);
create feed A from Nope where a > 1;
create feed B from T where b > 1;
create feed C from B where a > 1;
create feed D from X where title contains 'a';
subscribe to T output mail 'nobody' every 3 hours;
subscribe to T output mail;
create feed E from T where a > 1;
"""
    code, _, err = headgate("check", script(wrong))
    assert code == 1
    assert re.findall(r"line (\d+), column (\d+): (.*)", err) == [
        ("1", "15", "the address of the feed is missing"),
        ("3", "20", "there is no source or feed 'Nope'"),
        ("4", "28", "there is no attribute 'b' in 'T'"),
        ("7", "28", "'nobody' is not a mail address"),
        ("8", "23", "output mail needs a target in quotes"),
    ]
    assert "\n  subscribe to T output mail 'nobody' every 3 hours;\n" + " " * 29 + "^" in err
    assert "write: register feed https://… as X" in err


def test_a_long_sum_is_refused(headgate: Run) -> None:
    sum_ = " + ".join(["?x"] * 990)
    text = f"register stream T from post (a int); create feed F from T where {sum_} > 1;"
    code, _, err = headgate("check", script(text))
    assert code == 1
    assert "line 1, column 38: a statement is nested at most 64 deep" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("backtest", "Nope"), "there is no feed 'Nope'"),
        (("stats", "--since", "99999999999999d"), "a duration is at most 100 years"),
        (("run", "--master", "foo://x", "--folder", "f"), "'foo://x' is no master of Spark"),
        (("run", "--folder", "/proc/x"), "--folder: '/proc/x' cannot be written to"),
    ],
)
def test_an_error_is_one_line_that_says_what_is_wrong(
    headgate: Run, arguments: tuple[str, ...], message: str
) -> None:
    Path("headgate-data").mkdir()
    code, _, err = headgate(*arguments)
    assert code in (2, 3)
    assert message in " ".join(err.replace("│", " ").split())
    assert "Traceback" not in err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no full device")
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_an_output_that_is_full_is_an_error_of_one_line(tmp_path: Path, more: tuple[str]) -> None:
    (tmp_path / "s.feeds").write_text("register stream T from post (a int);")
    command = [sys.executable, "-m", "headgate", "check", "s.feeds", *more]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path, check=False
        )
    assert done.returncode == 2
    assert done.stderr == "error: the output cannot be used: No space left on device\n"
