"""The console's document and files: for whom they are, and what they may load."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.service.test_api import PATIENCE_S, Home
from tests.service.test_sign_in import HERE, PASSWORD, cookie_of, sign_in

from headgate.service import console

DOCUMENT = '<meta name="csp-nonce" content="%NONCE%"><script src="/console/assets/a-1.js"></script>'


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text(DOCUMENT)
    (tmp_path / "assets" / "a-1.js").write_text("export const a = 1;\n" * 100)
    (tmp_path / "icon.svg").write_text("<svg/>")
    monkeypatch.setattr(console, "FILES", tmp_path)
    console.built_files.cache_clear()
    yield tmp_path
    console.built_files.cache_clear()


@pytest.fixture
def browser(home: Home) -> Iterator[httpx.Client]:
    home.catalog.accounts.add("ada", PASSWORD)
    with httpx.Client(base_url=home.url, headers=HERE, timeout=PATIENCE_S) as client:
        yield client


@pytest.mark.usefixtures("files")
def test_every_page_is_one_document_with_its_own_nonce(browser: httpx.Client) -> None:
    cookie = cookie_of(sign_in(browser, "ada", PASSWORD))
    nonces = set()
    for path in ("/", "/river", "/feeds/Big%20news", "/why/1/Rock", "/system", "/admin/tokens"):
        answer = browser.get(path, headers=cookie)
        (nonce,) = re.findall(r'content="([^"]+)"', answer.text)
        policy = answer.headers["content-security-policy"]
        assert f"style-src 'self' 'nonce-{nonce}'" in policy
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        assert answer.headers["cache-control"] == "no-store"
        nonces.add(nonce)
        assert browser.get(path).status_code == 303, "nobody is signed in"
    assert len(nonces) == 6
    assert browser.get("/no-such-page", headers=cookie).status_code == 404


@pytest.mark.usefixtures("files")
def test_files_are_compressed_and_kept_for_good(browser: httpx.Client) -> None:
    answer = browser.get("/console/assets/a-1.js", headers={"accept-encoding": "gzip"})
    assert answer.headers["content-encoding"] == "gzip"
    assert "immutable" in answer.headers["cache-control"]
    assert answer.headers["content-type"].startswith("text/javascript")
    assert int(answer.headers["content-length"]) < 200
    plain = browser.get("/console/assets/a-1.js", headers={"accept-encoding": "identity"})
    assert plain.text == answer.text
    assert "immutable" not in browser.get("/console/icon.svg").headers["cache-control"]
    for name in ("index.html", "../console.py", "%2e%2e/console.py", "assets/", "assets/b.js", ""):
        assert browser.get(f"/console/{name}").status_code == 404


def test_without_a_build_the_start_page_says_how(
    browser: httpx.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "FILES", tmp_path)
    console.built_files.cache_clear()
    page = browser.get("/", headers=cookie_of(sign_in(browser, "ada", PASSWORD)))
    assert "scripts/build_console" in page.text
    console.built_files.cache_clear()
