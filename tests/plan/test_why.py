"""`why` gives the answers of the naive executor."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from urllib.parse import unquote

from hypothesis import given
from tests.plan.execute import execute
from tests.plan.papers import DOCUMENTS, SECTION_3, TABLES, defined
from tests.plan.strategies import OPERATORS, definitions, streams

from headgate.language.statements import Statement
from headgate.model.items import Item
from headgate.model.values import Xml
from headgate.plan.translate import compose
from headgate.plan.why import why

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


def item(source: str, **attributes: object) -> Item:
    return Item("x", source, NOON, attributes)  # type: ignore[arg-type]


@given(definitions(), streams())
def test_answers_agree_with_the_executor(
    definitions: dict[str, Statement], items: dict[str, list[Item]]
) -> None:
    output = execute(compose("last", definitions), items, OPERATORS)
    found = {pair for each in output for pair in _made_of(each)}
    for source, some in items.items():
        for each in some:
            answer = why("last", each, definitions).answer
            assert answer is None or answer == ((source, each.id) in found)


def _made_of(subject: Item) -> list[tuple[str, str]]:
    """An item of a table join is made of one item for each side."""
    sources, ids = subject.source.split("+"), subject.id.split("+")
    return [(unquote(a), unquote(b)) for a, b in zip(sources, ids, strict=True)]


def test_the_feeds_of_the_papers(golden: Callable[[str, str], None]) -> None:
    known, acme = defined(SECTION_3), Xml("<item><topic>ACME</topic></item>")
    explanation = [
        why("RockConcertStream", item("EventAnnounces", title="Rock night"), known),
        why(
            "RockConcertStream",
            item("FriendsFacebookStream", description="The concert of the year"),
            known,
        ),
        why("MusePhotoStream", item("MuseNews", title="On tour"), known),
        why("MusePhotoStream", item("MusicPhotos", category="rock"), known),
        why(
            "AcmeNews",
            item("News", document=acme),
            defined(DOCUMENTS),
        ),
        why("Best", item("Stocks", Symbol="ACM", PER=50.0), defined(TABLES)),
    ]
    golden("plan/why.txt", "\n\n".join(each.text() for each in explanation) + "\n")


def test_json_has_the_same_answers() -> None:
    explanation = why(
        "RockConcertStream", item("EventAnnounces", title="Rock night"), defined(SECTION_3)
    )
    (branch,) = explanation.as_json()["branches"]  # type: ignore[misc]
    assert explanation.as_json()["answer"] == branch["answer"] == "no"
    assert [part["answer"] for part in branch["parts"]] == ["no", "yes"]
    assert branch["parts"][0]["note"] == "description is missing"


def test_matching_branches_are_shown_first() -> None:
    sources = "register feed http://example.org/1 as s1;"
    parts = " | ".join(f"f{n}" for n in range(30))
    feeds = "".join(f"create feed f{n} from s1 where title contains 'w{n}';" for n in range(30))
    known = defined(f"{sources}{feeds}create feed all from ({parts});")
    text = why("all", item("s1", title="w29"), known).text()
    assert text.split("\n")[2] == "yes   s1"
    assert text.endswith("… and 10 more branches")
