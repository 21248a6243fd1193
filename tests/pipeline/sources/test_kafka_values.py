"""Schema files of Kafka sources: from the statement to the reader, and files that change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.pipeline.sources.test_kafka_protobuf import described, shop_file

from headgate.acquire.source_list import ListedSource, read_source_list, write_source_list
from headgate.language.parse import parse_script
from headgate.language.schemas import schemas_of
from headgate.model.errors import PipelineError
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type
from headgate.pipeline.source_groups import group_sources
from headgate.pipeline.sources.kafka_source import KafkaGroup, kafka_queries
from headgate.pipeline.sources.kafka_values import (
    SCHEMA_BYTES_MAX,
    current_schema,
    read_schema,
    value_reader,
)

SCHEMA = Schema((Attribute("n", Type.INT), Attribute("kafka_key", Type.TEXT)))
AVRO = json.dumps({"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]})
SOURCE = ListedSource(
    "S", "kafka://h:1/s", "stream", "kafka", value_format="avro", value_schema="r.avsc"
)


def test_a_statement_names_the_schema(tmp_path: Path) -> None:
    statements = parse_script(
        "register stream A from kafka 'kafka://h:1/a' avro 'a.avsc' framed (n int);"
        "register table B (n int key) from kafka 'kafka://h:1/b' protobuf 'b.desc' message 'p.B'"
        " keep 3 days;"
        "register stream C from kafka 'kafka://h:1/c' (n int);"
    )
    definitions = {str(each.name): each for each in statements}
    schemas = {name: next(iter(schemas_of(name, definitions))) for name in definitions}
    groups = group_sources(definitions, schemas).groups
    listed = {each.name: each for group in groups.values() for each in group.sources}
    found = {
        name: (each.value_format, each.value_schema, each.value_message, each.value_framing)
        for name, each in listed.items()
    }
    assert found == {
        "A": ("avro", "a.avsc", "", "framed"),
        "B": ("protobuf", "b.desc", "p.B", ""),
        "C": ("", "", "", ""),
    }
    write_source_list(tmp_path / "list.json", SCHEMA, listed.values())
    assert set(read_source_list(tmp_path / "list.json").sources) == set(listed.values())


def test_a_changed_schema_is_another_query(tmp_path: Path) -> None:
    (tmp_path / "r.avsc").write_text(AVRO)
    group = KafkaGroup("kafka.0a1b2c-0123456789ab", SCHEMA, (SOURCE,))
    queries = []
    for text in (AVRO, AVRO, AVRO.replace('"int"', '"long"')):
        (tmp_path / "r.avsc").write_text(text)
        schema, problem = current_schema(SOURCE, SCHEMA, base=tmp_path, folder=tmp_path / "q")
        assert schema is not None
        assert not problem
        queries += kafka_queries(group, {"s": "1"}, {}, {"S": schema})
    assert queries[0] == queries[1] != queries[2]


def test_an_error_in_a_file_is_shown_and_what_it_was_before_is_used(tmp_path: Path) -> None:
    base, folder = tmp_path / "base", tmp_path / "q"
    base.mkdir()
    schema, problem = current_schema(SOURCE, SCHEMA, base=base, folder=folder)
    assert schema is None
    assert problem == "schema 'r.avsc': there is no such file in the base folder"
    (base / "r.avsc").write_text(AVRO)
    good, problem = current_schema(SOURCE, SCHEMA, base=base, folder=folder)
    assert good is not None
    assert not problem
    (base / "r.avsc").write_text(AVRO[:-1])
    for _ in range(2):
        schema, problem = current_schema(SOURCE, SCHEMA, base=base, folder=folder)
        assert schema == good
        assert "'r.avsc': it is no JSON" in problem
        assert "what the file was before is used" in problem
        (base / "r.avsc").unlink(missing_ok=True)
        (base / "r.avsc").write_text("{")


def test_no_file_outside_of_the_base_folder_is_read(tmp_path: Path) -> None:
    base = tmp_path / "base"
    (base / "schemas").mkdir(parents=True)
    (tmp_path / "secret").write_text("x")
    (base / "schemas" / "link").symlink_to(tmp_path / "secret")
    (base / "inner").symlink_to(base / "schemas" / "good")
    (base / "schemas" / "good").write_bytes(b"good")
    assert read_schema(base, "schemas/good") == read_schema(base, "inner") == b"good"
    for name in ("../secret", str(tmp_path / "secret"), "schemas/link", "schemas", "", "a\0b"):
        with pytest.raises(PipelineError):
            read_schema(base, name)
    (base / "large").write_bytes(b" " * (SCHEMA_BYTES_MAX + 1))
    with pytest.raises(PipelineError, match="more than"):
        read_schema(base, "large")


def test_the_attribute_of_changes_need_not_be_a_field(tmp_path: Path) -> None:
    (tmp_path / "shop.desc").write_bytes(described(shop_file()))
    source = ListedSource(
        "T",
        "kafka://h:1/t",
        "table",
        "kafka",
        changes="op",
        value_format="protobuf",
        value_schema="shop.desc",
        value_message="shop.Click",
    )
    schema = Schema((Attribute("number", Type.INT, key=True), Attribute("op", Type.TEXT)))
    file, problem = current_schema(source, schema, base=tmp_path, folder=tmp_path / "q")
    assert file is not None
    assert not problem
    assert value_reader(file, schema, "op").read(b"\x08\x02") == {"number": 1}
