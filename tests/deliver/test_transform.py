"""Stylesheets of strangers: what they may do, and that they can do no harm."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.deliver.things import item
from tests.sandbox.processes import worker_of

from headgate.deliver.entry import TransformedText
from headgate.deliver.errors import TransformError
from headgate.deliver.transform import (
    LimitBroken,
    Stylesheet,
    Transformer,
    TransformLimits,
    read_stylesheet,
)
from headgate.model.items import Item

LIMITS = TransformLimits(wall_s=4.0, cpu_s=1.0, output_length_max=100_000)
HEAD = '<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"'


@pytest.fixture(scope="module")
def transformer() -> Iterator[Transformer]:
    with Transformer(LIMITS) as found:
        yield found


def sheet(body: str, *, head: str = "", before: str = "", name: str = "x.xsl") -> Stylesheet:
    return Stylesheet(name, f"{before}{HEAD} {head}>\n{body}\n</xsl:stylesheet>".encode())


def template(body: str, **more: str) -> Stylesheet:
    return sheet(f'<xsl:template match="/">{body}</xsl:template>', **more)


TITLE = sheet(
    '<xsl:output method="text"/>'
    '<xsl:template match="/item"><xsl:value-of select="title"/></xsl:template>'
)


def assert_still_works(transformer: Transformer) -> None:
    assert transformer.transform(TITLE, item()) == TransformedText("Title of n1", is_html=False)


def test_text_is_free_text(transformer: Transformer):
    assert_still_works(transformer)


def test_html_is_free_text(transformer: Transformer):
    found = transformer.transform(template("<p><xsl:value-of select='item/title'/></p>"), item())
    assert isinstance(found, TransformedText)
    assert found.is_html
    assert "<p>Title of n1</p>" in found.text


def test_an_item_is_an_item_again(transformer: Transformer):
    made = template(
        "<item><title>New</title><price type='int'>5</price>"
        "<content><xsl:value-of select='item/title'/><p><b>x</b></p></content></item>"
    )
    original = item()
    found = transformer.transform(made, original)
    assert isinstance(found, Item)
    assert found == original
    assert found.attributes == {
        "title": "New",
        "price": 5,
        "content": "Title of n1<p><b>x</b></p>",
    }


def test_an_error_names_stylesheet_and_line(transformer: Transformer):
    with pytest.raises(TransformError, match=r"^My\.xsl, line 2: ") as caught:
        transformer.transform(sheet("<xsl:unknown/>", name="My.xsl"), item())
    assert (caught.value.stylesheet, caught.value.line) == ("My.xsl", 2)
    with pytest.raises(TransformError, match=r"^My\.xsl, line 1: "):
        transformer.transform(Stylesheet("My.xsl", b"<a>"), item())
    assert_still_works(transformer)


def test_a_message_that_terminates_is_an_error(transformer: Transformer):
    with pytest.raises(TransformError, match="enough"):
        transformer.transform(template("<xsl:message terminate='yes'>enough</xsl:message>"), item())


RECURSION = sheet(
    '<xsl:template match="/"><xsl:call-template name="a"/></xsl:template>'
    '<xsl:template name="a"><xsl:call-template name="a"/></xsl:template>'
)
DOUBLING = sheet(
    '<xsl:template match="/"><xsl:call-template name="a">'
    '<xsl:with-param name="s" select="\'xxxxxxxx\'"/></xsl:call-template></xsl:template>'
    '<xsl:template name="a"><xsl:param name="s"/><xsl:call-template name="a">'
    '<xsl:with-param name="s" select="concat($s, $s)"/></xsl:call-template></xsl:template>'
)
EXPONENTIAL_TIME = sheet(
    '<xsl:template match="/"><xsl:call-template name="a">'
    '<xsl:with-param name="n" select="60"/></xsl:call-template></xsl:template>'
    '<xsl:template name="a"><xsl:param name="n"/><xsl:if test="$n &gt; 0">'
    '<xsl:call-template name="a"><xsl:with-param name="n" select="$n - 1"/></xsl:call-template>'
    '<xsl:call-template name="a"><xsl:with-param name="n" select="$n - 1"/></xsl:call-template>'
    "</xsl:if></xsl:template>"
)
HUGE_OUTPUT = sheet(
    '<xsl:template match="/"><xsl:call-template name="a">'
    '<xsl:with-param name="n" select="17"/></xsl:call-template></xsl:template>'
    '<xsl:template name="a"><xsl:param name="n"/><xsl:choose><xsl:when test="$n &gt; 0">'
    '<xsl:call-template name="a"><xsl:with-param name="n" select="$n - 1"/></xsl:call-template>'
    '<xsl:call-template name="a"><xsl:with-param name="n" select="$n - 1"/></xsl:call-template>'
    "</xsl:when><xsl:otherwise>xxxxxxxxxx</xsl:otherwise></xsl:choose></xsl:template>"
)
LARGE_TREE = Stylesheet(
    "x.xsl",
    HUGE_OUTPUT.content.replace(b'"17"', b'"19"').replace(b"xxxxxxxxxx", b"<a b='c'/>"),
)
LAUGHS = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12))
BILLION = template(
    "&a11;", before=f'<!DOCTYPE xsl:stylesheet [<!ENTITY a0 "ha">{LAUGHS}]>', name="x.xsl"
)
DEEP = template("<a>" * 100_000 + "</a>" * 100_000)
DEEP_XPATH = template(f"<xsl:value-of select='{'(' * 50_000}1{')' * 50_000}'/>")
DEEP_PREDICATE = template(f"<xsl:value-of select='{'*[' * 20_000}1{']' * 20_000}'/>")


def passwords(call: str) -> Stylesheet:
    return template(f'<xsl:copy-of select="{call}"/>')


@pytest.mark.parametrize(
    ("stylesheet", "why"),
    [
        pytest.param(RECURSION, "recursion|depth|stack", id="recursion"),
        # libxml2 has a limit for texts; a busy machine reaches the limit of time before it.
        pytest.param(DOUBLING, "variable 's'|takes", id="doubling"),
        pytest.param(EXPONENTIAL_TIME, "takes", id="exponential time"),
        pytest.param(HUGE_OUTPUT, "longer than 100,000", id="huge output"),
        pytest.param(BILLION, "DTD|entit", id="billion laughs"),
        pytest.param(DEEP, "depth|memory", id="deep"),
        pytest.param(DEEP_XPATH, "XPath|select|memory|compile", id="deep XPath"),
        pytest.param(DEEP_PREDICATE, "XPath|select|memory|compile", id="deep predicates"),
    ],
)
def test_what_costs_too_much_ends_within_its_limits(
    transformer: Transformer, stylesheet: Stylesheet, why: str
):
    began = time.monotonic()
    with pytest.raises(TransformError, match=why):
        transformer.transform(stylesheet, item())
    assert time.monotonic() - began < LIMITS.wall_s + 2
    assert_still_works(transformer)


def test_memory_is_limited():
    """Without memory libxslt goes on complaining, so it may be the time that ends it."""
    limits = TransformLimits(memory_bytes=24 * 1024 * 1024, cpu_s=1.0, wall_s=3.0)
    with Transformer(limits) as transformer:
        with pytest.raises(LimitBroken, match="takes"):
            transformer.transform(LARGE_TREE, item())
        assert_still_works(transformer)


EXSLT = 'xmlns:exsl="http://exslt.org/common" extension-element-prefixes="exsl"'


DENIED = "rights for .* denied"
REACHING_OUT = {
    "document of a file": (passwords("document('/etc/passwd')"), DENIED),
    "document of a file URL": (passwords("document('file:///etc/passwd')"), DENIED),
    "document of the network": (passwords("document('http://127.0.0.1:9/x')"), DENIED),
    "include a file": (sheet('<xsl:include href="/etc/passwd"/>'), "line 2: xsl:include"),
    "include": (sheet('<xsl:include href="http://127.0.0.1:9/a.xsl"/>'), "xsl:include"),
    "import": (sheet('<xsl:import href="a.xsl"/>'), "xsl:import"),
    "xsl:document": (template('<xsl:document href="{file}">x</xsl:document>'), "xsl:document"),
    "exsl:document": (
        template('<exsl:document href="{file}">x</exsl:document>', head=EXSLT),
        "extensions are refused",
    ),
    "saxon:output": (
        template("<s:output xmlns:s='http://icl.com/saxon' href='{file}'>x</s:output>"),
        "extensions are refused",
    ),
    "evaluation": (template("<a/>", head='xmlns:d="http://exslt.org/dynamic"'), "extensions"),
    "a function": (
        template("<xsl:copy-of select='f:f()' xmlns:f='http://exslt.org/x'/>"),
        "extensions are refused",
    ),
    "external entity": (
        template("&x;", before='<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>'),
        "DTD|ntit",
    ),
    "external DTD": (template("x", before='<!DOCTYPE a SYSTEM "http://127.0.0.1:9/x">'), "DTD"),
}


@pytest.mark.parametrize(("stylesheet", "why"), REACHING_OUT.values(), ids=REACHING_OUT.keys())
def test_what_reaches_out_is_refused(
    transformer: Transformer, stylesheet: Stylesheet, why: str, tmp_path: Path
):
    file = tmp_path / "written"
    content = stylesheet.content.replace(b"{file}", str(file).encode())
    with pytest.raises(TransformError, match=why) as caught:
        transformer.transform(Stylesheet("x.xsl", content), item())
    assert "root:" not in str(caught.value)
    assert not file.exists()
    assert_still_works(transformer)


def test_the_child_can_open_nothing(transformer: Transformer):
    """Whatever hole libxslt has: the kernel gives the child no further descriptor."""
    assert_still_works(transformer)
    assert transformer.child_pid is not None
    process = worker_of(transformer.child_pid)
    limits = Path(f"/proc/{process}/limits").read_text(encoding="ascii")
    wanted = {"Max open files": "0", "Max file size": "0", "Max core file size": "0"}
    for name, value in wanted.items():
        line = next(line for line in limits.splitlines() if line.startswith(name))
        assert line.removeprefix(name).split()[:2] == [value, value]
    line = next(line for line in limits.splitlines() if line.startswith("Max address space"))
    assert int(line.split()[3]) < 2**30
    descriptors = [os.readlink(each) for each in Path(f"/proc/{process}/fd").iterdir()]
    assert [each for each in descriptors if each.startswith("/")] == ["/dev/null"] * 3
    assert len(descriptors) == 5, "besides these, the two pipes"


def test_what_broke_a_limit_is_not_run_again_at_once(transformer: Transformer):
    slow = sheet(EXPONENTIAL_TIME.content.decode().split(">\n", 1)[1].rsplit("\n", 1)[0] + " ")
    for _ in range(2):
        began = time.monotonic()
        with pytest.raises(LimitBroken):
            transformer.transform(slow, item())
    assert time.monotonic() - began < 0.1


def test_a_child_that_is_killed_is_replaced():
    with Transformer(LIMITS) as transformer:
        assert_still_works(transformer)
        assert transformer.child_pid is not None
        os.kill(worker_of(transformer.child_pid), signal.SIGKILL)
        with pytest.raises(LimitBroken):
            transformer.transform(TITLE, item())
        other = template("again")
        assert "again" in transformer.run(other, "<item/>")[0]


def test_a_child_is_replaced_after_many_requests():
    with Transformer(TransformLimits(requests_max=2)) as transformer:
        pids = set()
        for _ in range(5):
            assert_still_works(transformer)
            pids.add(transformer.child_pid)
        assert len(pids) == 3


def test_threads_take_turns(transformer: Transformer):
    found: list[object] = []

    def work(number: int) -> None:
        found.extend(transformer.transform(TITLE, item(title=f"{number}.{n}")) for n in range(20))

    threads = [threading.Thread(target=work, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = {f"{number}.{n}" for number in range(4) for n in range(20)}
    assert {each.text for each in found if isinstance(each, TransformedText)} == expected


ENCODINGS = [
    *("iso-8859-2", "windows-1251", "koi8-r", "shift_jis", "euc-jp", "gb2312", "big5"),
    *("utf-16", "ucs-4", "no-such"),
]


@pytest.mark.parametrize("method", ["text", "html", "xml"])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_an_encoding_changes_no_output(transformer: Transformer, encoding: str, method: str):
    """The output becomes text, so the encoding that a stylesheet names means nothing."""
    body = "<p>žena, жена, 東京<xsl:value-of select='item'/></p>"
    made = sheet(
        f'<xsl:output method="{method}" encoding="{encoding}"/>'
        f"<xsl:template match='/'>{body}</xsl:template>"
    )
    output, _ = transformer.run(made, "<item>: ω</item>")
    assert "žena, жена, 東京: ω" in output


def test_stylesheets_may_be_written_in_any_encoding(transformer: Transformer):
    text = template("жена").content.decode()
    content = b'<?xml version="1.0" encoding="koi8-r"?>' + text.encode("koi8-r")
    assert "жена" in transformer.run(Stylesheet("x.xsl", content), "<item/>")[0]


SECRET = "of-user-A"
FAILING = [
    template(f"<xsl:message terminate='yes'>{SECRET}<xsl:value-of select='.'/></xsl:message>"),
    template(f"<xsl:message>{SECRET}<xsl:value-of select='.'/></xsl:message>"),
    template(f"<xsl:copy-of select=\"document('{SECRET}')\"/>"),
    sheet(f"<xsl:unknown>{SECRET}</xsl:unknown>"),
    template(f"<xsl:value-of select='${SECRET}'/>"),
    Stylesheet("x.xsl", f"<{SECRET}".encode()),
    template("", before=f'<!DOCTYPE a [<!ENTITY {SECRET} "{SECRET}">]>'),
]
OTHERS = [
    *(Stylesheet("x.xsl", each.content.replace(SECRET.encode(), b"B")) for each in FAILING),
    Stylesheet("x.xsl", b"<a>"),
    Stylesheet("x.xsl", b""),
]


@pytest.mark.parametrize("other", OTHERS)
def test_nothing_of_one_stylesheet_is_in_the_error_of_another(
    transformer: Transformer, other: Stylesheet
):
    for failing in FAILING:
        with suppress(TransformError):
            transformer.run(failing, f"<item>{SECRET}</item>")
        try:
            said = transformer.run(other, "<item/>")[0]
        except TransformError as error:
            said = str(error)
        assert SECRET not in said
        assert said.count("\n") < 3


def test_an_error_of_one_item_is_not_in_that_of_the_next(transformer: Transformer):
    """Both use the same stylesheet, which stays compiled."""
    shared = template("<xsl:message terminate='yes'>said: <xsl:value-of select='.'/></xsl:message>")
    for text in (SECRET, "nothing"):
        with pytest.raises(TransformError) as caught:
            transformer.run(shared, f"<item>{text}</item>")
    assert "said: nothing" in str(caught.value)
    assert SECRET not in str(caught.value)


def test_stylesheets_come_from_their_folder_only(tmp_path: Path):
    folder = tmp_path / "stylesheets"
    folder.mkdir()
    (folder / "a.xsl").write_bytes(b"<a/>")
    (tmp_path / "secret.xsl").write_bytes(b"<secret/>")
    (folder / "link.xsl").symlink_to(tmp_path / "secret.xsl")
    assert read_stylesheet(folder, "a.xsl") == Stylesheet("a.xsl", b"<a/>")
    for name in ("../secret.xsl", "link.xsl", "none.xsl", "", str(tmp_path / "secret.xsl")):
        with pytest.raises(TransformError):
            read_stylesheet(folder, name)
