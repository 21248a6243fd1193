"""Sources that come alike and have one schema are one group."""

from __future__ import annotations

from headgate.language.parse import parse_script
from headgate.language.schemas import schemas_of
from headgate.pipeline.source_groups import GroupKind, group_sources
from headgate.pipeline.sources.source_format import NO_DATA


def test_groups() -> None:
    statements = parse_script(
        "register feed http://a.example/ as A; register feed http://b.example/ as B;"
        "register feed http://c.example/ as C (price float);"
        "register stream T from json 't/*.json' (a int);"
        "register stream U from csv 'u/*.csv' (a int);"
        "register table V (a int key) from json 'v/*.json';"
        "register stream K from kafka 'kafka://localhost:9092/k' (a int);"
        "register stream L from kafka 'kafka://localhost:9092/l' (a int);"
        "register stream O from kafka 'kafka://other:9092/o' (a int);"
        "register stream P from kafka 'localhost' (a int);"
        "register stream Q from kafka 'kafka://localhost:9092/q' (kafka_offset text);"
        "register stream N from nats 'nats://localhost/n' (a int);"
        "register stream E from post (a int);"
        "register documents D from xml 'd/*.xml';"
        "register feed A apply 'x.xsl' as M;"
    )
    definitions = {str(each.name): each for each in statements}
    schemas = {name: next(iter(schemas_of(name, definitions))) for name in definitions}
    found = group_sources(definitions, schemas, weights={"B": 7.0})
    members = {
        (group.kind, tuple(each.name for each in group.sources)) for group in found.groups.values()
    }
    assert members == {
        (GroupKind.FEEDS, ("A", "B")),
        (GroupKind.FEEDS, ("C",)),
        (GroupKind.FILES, ("T", "U", "V")),
        (GroupKind.FILES, ("D",)),
        (GroupKind.KAFKA, ("K", "L")),
        (GroupKind.KAFKA, ("O",)),
        (GroupKind.POST, ("E",)),
    }
    assert found.refused["N"] == "sources of format 'nats' cannot be read yet"
    assert "kafka://host:port/topic" in found.refused["P"]
    assert found.refused["Q"] == "'kafka_offset' of a Kafka source is an int, not a text"
    assert sorted(found.refused) == ["N", "P", "Q"]
    feeds = next(group for group in found.groups.values() if group.sources[0].name == "A")
    assert [each.weight for each in feeds.sources] == [1.0, 7.0]
    assert found.groups[feeds.name] is feeds


def test_without_a_folder_no_file_is_read() -> None:
    statements = parse_script(
        "register feed http://a.example/ as A; register stream T from json 't/*.json' (a int);"
        "register stream K from kafka 'kafka://localhost:9092/k' (a int);"
    )
    definitions = {str(each.name): each for each in statements}
    schemas = {name: next(iter(schemas_of(name, definitions))) for name in definitions}
    found = group_sources(definitions, schemas, has_files=False)
    assert found.refused == {"T": NO_DATA}
    assert {group.kind for group in found.groups.values()} == {GroupKind.FEEDS, GroupKind.KAFKA}
