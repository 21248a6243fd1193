"""Files: nothing outside of the folder, never half a file, and each item once."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.deliver.things import any_text, item, items

from headgate.deliver import safe_folder as folder_module
from headgate.deliver.entry import OutputDocument, TransformedText, entry_of
from headgate.deliver.errors import OutputError
from headgate.deliver.output_file import (
    RENDERERS,
    STYLESHEET_TYPES,
    console_lines,
    format_of,
    renderer_of,
    write_console,
    write_document,
)
from headgate.deliver.safe_folder import checked_parts, read_file, replace_file
from headgate.language import check
from headgate.model.items import Item

DOCUMENT = OutputDocument("urn:x", "Rock", (entry_of(item("a")), entry_of(item("b"))))


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/passwd",
        "../a.rss",
        "a/../../b.rss",
        "a//b.rss",
        "a/",
        ".hidden",
        "a/.b",
        "a\0b",
        "a\nb",
        "a\\b",
        "c:a.rss",
        "CON",
        "nul.rss",
        "com1.atom",
        "a.rss.",
        "a ",
        "x" * 201,
        "é" * 101,
        "/".join("abcdefghi"),
        "\ud800.rss",
        "a\u202eb.rss",
    ],
)
def test_a_path_that_could_do_harm_is_refused(path: str, tmp_path: Path):
    with pytest.raises(OutputError, match="is refused") as caught:
        replace_file(tmp_path / "out", path, b"x")
    assert caught.value.lasting
    assert list(tmp_path.iterdir()) == []


@given(st.lists(any_text | st.sampled_from(["..", ".", "", "a", "nul"]), max_size=4))
def test_no_path_leaves_the_folder(parts: list[str]):
    try:
        found = checked_parts("/".join(parts))
    except OutputError:
        return
    assert not Path(*found).is_absolute()
    assert os.path.normpath(os.path.join("out", *found)) == os.path.join("out", *found)


def test_links_are_not_followed(tmp_path: Path):
    out, outside = tmp_path / "out", tmp_path / "outside"
    out.mkdir()
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    (out / "folder").symlink_to(outside)
    (out / "file.txt").symlink_to(outside / "secret")
    with pytest.raises(OutputError, match="cannot be written"):
        replace_file(out, "folder/a.txt", b"x")
    assert read_file(out, "file.txt", bytes_max=100) is None
    assert replace_file(out, "file.txt", b"x")
    assert (outside / "secret").read_bytes() == b"secret"
    assert not (out / "file.txt").is_symlink()
    assert sorted(each.name for each in outside.iterdir()) == ["secret"]


def test_devices_and_pipes_do_not_block(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    assert read_file(tmp_path, "pipe", bytes_max=100) is None
    assert replace_file(tmp_path, "pipe", b"x")
    assert (tmp_path / "pipe").read_bytes() == b"x"


def test_folders_are_made_and_unchanged_files_left(tmp_path: Path):
    assert replace_file(tmp_path / "out", "a/b/c.txt", b"one")
    before = os.stat(tmp_path / "out/a/b/c.txt")
    assert not replace_file(tmp_path / "out", "a/b/c.txt", b"one")
    after = os.stat(tmp_path / "out/a/b/c.txt")
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    assert replace_file(tmp_path / "out", "a/b/c.txt", b"two")
    assert (tmp_path / "out/a/b/c.txt").read_bytes() == b"two"
    assert [each.name for each in (tmp_path / "out/a/b").iterdir()] == ["c.txt"]


@pytest.mark.parametrize("call", ["fsync", "replace", "open"])
def test_a_full_disk_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
):
    replace_file(tmp_path, "a.txt", b"old")
    real: Callable[..., object] = getattr(os, call)
    calls = 0

    def fail(*arguments: object, **named: object) -> object:
        nonlocal calls
        calls += 1
        writes = call != "open" or any("headgate-" in str(each) for each in arguments)
        if writes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(folder_module.os, call, fail)
        with pytest.raises(OutputError, match="No space left") as caught:
            replace_file(tmp_path, "a.txt", b"new")
    assert calls
    assert not caught.value.lasting
    assert (tmp_path / "a.txt").read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["a.txt"]
    assert replace_file(tmp_path, "a.txt", b"new")
    assert (tmp_path / "a.txt").read_bytes() == b"new"


def test_what_a_dead_process_left_is_removed(tmp_path: Path):
    (tmp_path / ".headgate-a.txt").write_bytes(b"half a fi")
    assert replace_file(tmp_path, "a.txt", b"new")
    assert [each.name for each in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("extension", RENDERERS)
def test_the_extension_chooses_the_format(tmp_path: Path, extension: str):
    assert write_document(tmp_path, f"a{extension.upper()}", DOCUMENT)
    assert b"Title of a" in (tmp_path / f"a{extension.upper()}").read_bytes()
    assert not write_document(tmp_path, f"a{extension.upper()}", DOCUMENT)


def test_an_unknown_extension_needs_a_stylesheet(tmp_path: Path):
    with pytest.raises(OutputError, match=r"is allowed; name it \.atom, .* or \.txt"):
        renderer_of("a.csv", has_stylesheet=False)
    free = [TransformedText("a;b", is_html=False), TransformedText("<row>1</row>", is_html=True)]
    rows = OutputDocument("urn:x", "Rock", tuple(entry_of(item(), each) for each in free))
    assert write_document(tmp_path, "a.csv", rows, has_stylesheet=True)
    assert (tmp_path / "a.csv").read_bytes() == b"a;b\n<row>1</row>\n"


@given(any_text, items)
def test_a_line_is_printable(feed: str, item: Item):
    (line,) = console_lines(feed, entry_of(item))
    assert line.isprintable()


@given(items, any_text)
def test_free_text_is_printable_too(item: Item, text: str):
    for line in console_lines("F", entry_of(item, TransformedText(text, is_html=False))):
        assert line.isprintable()


def test_a_line_says_feed_time_title_and_link():
    stream = io.StringIO()
    write_console(stream, "Rock", entry_of(item("a", title="\x1b[2JMuse\u202e")))
    expected = "Rock  2026-11-16 12:00:00+00:00  [2JMuse  https://muse.mu/a\n"
    assert stream.getvalue() == expected


def test_a_console_that_is_gone_is_an_error():
    stream = io.StringIO()
    stream.close()
    with pytest.raises(OutputError, match="console"):
        write_console(stream, "Rock", entry_of(item()))


@pytest.mark.parametrize("name", ["a.svg", "a.php", "a.xhtml", "a.opml", "a.js", "a", "a.csv.exe"])
def test_other_extensions_are_refused_also_with_a_stylesheet(tmp_path: Path, name: str):
    for make in (renderer_of, format_of):
        with pytest.raises(OutputError, match=r"allowed; name it \.atom.*\.csv.* or \.ics"):
            make(name, has_stylesheet=True)
    with pytest.raises(OutputError):
        write_document(tmp_path, name, OutputDocument("i", "t", ()), has_stylesheet=True)
    assert list(tmp_path.iterdir()) == []


def test_the_language_allows_the_same_extensions():
    assert set(check._FILE_ENDINGS) == set(RENDERERS)
    assert set(check._STYLESHEET_ENDINGS) == set(STYLESHEET_TYPES)


@pytest.mark.parametrize("suffix", [each for each in RENDERERS if each != ".txt"])
def test_markup_of_a_stylesheet_cannot_run(tmp_path: Path, suffix: str):
    """Whatever a browser may take for markup is sanitised or escaped."""
    attack = "<script>alert(1)</script><svg onload='alert(1)'><b>bold</b>"
    entry = entry_of(item(), TransformedText(attack, is_html=True))
    write_document(tmp_path, f"a{suffix}", OutputDocument("i", "t", (entry,)), has_stylesheet=True)
    written = (tmp_path / f"a{suffix}").read_text(encoding="utf-8")
    assert "bold" in written
    assert "<script" not in written.replace("<script>document", "")
    assert "<svg" not in written
