"""Avro values, by the schema in a file (.avsc) with which they were written.

    {"type": "record", "name": "Click", "fields": [{"name": "page", "type": "string"}, …]}
        │ once: a list of steps, one for each field of the record
        ▼
    read page │ skip tags (an array) │ read time          the attributes of a value

Fields that are not attributes are skipped, and nothing is built for them. The value must end where
its last field ends. What the bytes of strangers may cost is said in kafka_avro_types.py.

**The prefix of a schema registry** is a zero byte and the number of a schema in four bytes. No
registry is asked; the file is the schema of all values. Avro has no mark of its own, so a value
that begins with a zero byte may be either. `framed` and `plain` in the statement decide it. Without
them:

    first byte      with 5 bytes skipped    as a whole       the value
    not 0, or fewer than 5 bytes                             has no prefix
    0               can be read             cannot           has a prefix
    0               cannot                  can be read      has no prefix
    0               can be read             can be read      is rejected, unless both are the same

Rejected: fastavro. Its reader is compiled without checks of depth, and ends the process with a
segmentation fault on 1 MB of a recursive type; six bytes (an array of 2³¹ nulls) fill 3 GB; and it
does not notice that a skipped field is cut off. It is the oracle of the tests. Rejected: Spark's
`from_avro`, because its jar is one more to resolve, and it gives no reason for a rejected message.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence

from headgate.acquire.read_json import nesting
from headgate.model.errors import InvalidValue, did_you_mean
from headgate.model.schema import Schema
from headgate.model.values import Type, Value
from headgate.pipeline.sources.kafka_avro_types import (
    LOGICAL,
    PRIMITIVES,
    TOO_SHORT,
    AvroType,
    Read,
    Skip,
    read_converted,
    read_enum,
    read_fixed,
    read_union,
    skip_blocks,
    skip_entry,
    skip_fixed,
    skip_long,
    skip_nothing,
    skip_record,
    skip_union,
    to_decimal,
    to_uuid,
)
from headgate.pipeline.sources.kafka_fields import (
    MAGIC,
    PREFIX_BYTES,
    SchemaFile,
    attribute_value,
    attributes_in,
)

SCHEMA_NESTING_MAX = 100
PRECISION_MAX = 1_000


class AvroReader:
    """Reads values of one source. For one thread at a time or many: it has no state."""

    def __init__(self, file: SchemaFile, schema: Schema, *, optional: str = "") -> None:
        self._framing = file.framing
        fields = SchemaCompiler(file).root_fields()
        attributes = attributes_in(schema, fields, file, optional)
        self._steps: list[tuple[str, Type, Read] | Skip] = []
        for name, type_ in fields.items():
            if name not in attributes:
                self._steps.append(type_.skip)
            elif type_.read is None:
                raise file.error(f"field '{name}' is a record, an array or a map, no attribute")
            else:
                self._steps.append((name, attributes[name].type, type_.read))

    def read(self, data: bytes) -> dict[str, Value]:
        may_be_framed = data.startswith(MAGIC) and len(data) >= PREFIX_BYTES
        if self._framing == "framed":
            if not may_be_framed:
                raise InvalidValue("the prefix of a schema registry is missing")
            return self._record(data, PREFIX_BYTES)
        if self._framing == "plain" or not may_be_framed:
            return self._record(data, 0)
        return self._either(data)

    def _either(self, data: bytes) -> dict[str, Value]:
        """The value may have a prefix or not."""
        found: list[dict[str, Value]] = []
        reasons: list[str] = []
        for start in (PREFIX_BYTES, 0):
            try:
                found.append(self._record(data, start))
            except InvalidValue as error:
                reasons.append(str(error))
        if not found:
            raise InvalidValue(f"with a prefix: {reasons[0]}; without: {reasons[1]}")
        if len(found) > 1 and repr(found[0]) != repr(found[1]):
            raise InvalidValue(
                "the value can be read with a prefix and without; write 'framed' or 'plain' after "
                "the schema"
            )
        return found[0]

    def _record(self, data: bytes, at: int) -> dict[str, Value]:
        attributes: dict[str, Value] = {}
        name = ""
        try:
            for step in self._steps:
                if not isinstance(step, tuple):
                    at = step(data, at, 0)
                    continue
                name, type_, read = step
                value, at = read(data, at)
                if value is not None:
                    attributes[name] = attribute_value(name, value, type_)
        except (IndexError, struct.error):
            raise InvalidValue(TOO_SHORT) from None
        except UnicodeDecodeError:
            raise InvalidValue(f"attribute '{name}': the text is not UTF-8") from None
        except OverflowError:
            raise InvalidValue(f"attribute '{name}': the time is out of range") from None
        if at != len(data):
            raise InvalidValue(f"{len(data) - at:,} bytes are left over")
        return attributes


# --- the schema -----------------------------------------------------------------------------------


class SchemaCompiler:
    """Turns the types of a schema into functions. An error names the file and the field."""

    def __init__(self, file: SchemaFile) -> None:
        self._file = file
        self._named: dict[str, AvroType] = {}

    def root_fields(self) -> dict[str, AvroType]:
        try:
            text = self._file.content.decode("utf-8")
            if nesting(self._file.content) > SCHEMA_NESTING_MAX:
                raise self._file.error("it is nested too deeply")
            schema = json.loads(text)
        except ValueError as error:
            raise self._file.error(f"it is no JSON: {error}") from None
        if not isinstance(schema, dict) or schema.get("type") != "record":
            raise self._file.error('it is no record: expected {"type": "record", …}')
        return self._record(schema, "", "the schema")[1]

    def _type(self, schema: object, namespace: str, where: str) -> AvroType:
        if isinstance(schema, str):
            return self._by_name(schema, namespace, where)
        if isinstance(schema, list):
            return self._union(schema, namespace, where)
        if not isinstance(schema, dict):
            raise self._file.error(f"{where}: expected a type, found {json.dumps(schema)[:40]}")
        kind = schema.get("type")
        match kind:
            case "record" | "error":
                return self._record(schema, namespace, where)[0]
            case "enum":
                return self._enum(schema, namespace, where)
            case "fixed":
                return self._fixed(schema, namespace, where)
            case "array":
                return AvroType(skip_blocks(self._type(schema.get("items"), namespace, where)))
            case "map":
                values = self._type(schema.get("values"), namespace, where)
                return AvroType(skip_blocks(AvroType(skip_entry(values))))
            case str() if kind in PRIMITIVES:
                return self._logical(PRIMITIVES[kind], kind, schema, where)
        return self._type(kind, namespace, where)

    def _by_name(self, name: str, namespace: str, where: str) -> AvroType:
        if name in PRIMITIVES:
            return PRIMITIVES[name]
        for full in (name if "." in name or not namespace else f"{namespace}.{name}", name):
            if full in self._named:
                return self._named[full]
        hint = did_you_mean(name, [*PRIMITIVES, *self._named])
        raise self._file.error(f"{where}: unknown type '{name}'" + (f"; {hint}" if hint else ""))

    def _define(
        self, schema: Mapping[str, object], namespace: str, type_: AvroType, where: str
    ) -> str:
        """Name a type; returns the namespace of what is in it."""
        name, own = schema.get("name"), schema.get("namespace")
        if not isinstance(name, str) or not name:
            raise self._file.error(f"{where}: a {schema['type']} needs a name")
        if "." in name:
            namespace = name.rpartition(".")[0]
        elif isinstance(own, str):
            namespace = own
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        if full in self._named or full in PRIMITIVES:
            raise self._file.error(f"{where}: the type '{full}' is defined twice")
        self._named[full] = type_
        return namespace

    def _record(
        self, schema: Mapping[str, object], namespace: str, where: str
    ) -> tuple[AvroType, dict[str, AvroType]]:
        """A record and its fields, of which any may be the record again."""
        record = AvroType(skip_nothing)
        inner = self._define(schema, namespace, record, where)
        fields, found = schema.get("fields"), dict[str, AvroType]()
        if not isinstance(fields, list):
            raise self._file.error(f"{where}: the record '{schema['name']}' needs a list of fields")
        for field in fields:
            name = field.get("name") if isinstance(field, dict) else None
            if not isinstance(name, str) or "type" not in field:
                raise self._file.error(f"record '{schema['name']}': a field has a name and a type")
            if name in found:
                raise self._file.error(f"record '{schema['name']}': two fields '{name}'")
            found[name] = self._type(field["type"], inner, f"field '{schema['name']}.{name}'")
        record.skip = skip_record(list(found.values()))
        return record, found

    def _union(self, schemas: Sequence[object], namespace: str, where: str) -> AvroType:
        if not schemas or any(isinstance(each, list) for each in schemas):
            raise self._file.error(f"{where}: a union has types, and no union is in a union")
        types = [self._type(each, namespace, where) for each in schemas]
        reads = [each.read for each in types if each.read is not None]
        is_simple = len(reads) == len(types)
        return AvroType(skip_union(types), read_union(reads) if is_simple else None)

    def _enum(self, schema: Mapping[str, object], namespace: str, where: str) -> AvroType:
        symbols = schema.get("symbols")
        if not isinstance(symbols, list) or not all(isinstance(each, str) for each in symbols):
            raise self._file.error(f"{where}: an enum needs a list of symbols")
        enum = AvroType(skip_long, read_enum(symbols))
        self._define(schema, namespace, enum, where)
        return enum

    def _fixed(self, schema: Mapping[str, object], namespace: str, where: str) -> AvroType:
        size = schema.get("size")
        if isinstance(size, bool) or not isinstance(size, int) or size < 0:
            raise self._file.error(f"{where}: a fixed type needs a size")
        plain = AvroType(skip_fixed(size), read_fixed(size))
        fixed = self._logical(plain, "fixed", schema, where)
        self._define(schema, namespace, fixed, where)
        return fixed

    def _logical(
        self, plain: AvroType, kind: str, schema: Mapping[str, object], where: str
    ) -> AvroType:
        """The type with its logical type, if that is known and fits; else it is ignored."""
        logical = schema.get("logicalType")
        convert = LOGICAL.get((kind, logical)) if isinstance(logical, str) else None
        if logical == "decimal" and kind in ("bytes", "fixed"):
            precision, scale = schema.get("precision"), schema.get("scale", 0)
            if not isinstance(precision, int) or not isinstance(scale, int):
                raise self._file.error(f"{where}: a decimal needs a precision and a scale")
            if not 0 <= scale <= precision <= PRECISION_MAX:
                raise self._file.error(f"{where}: a precision is at most {PRECISION_MAX:,} digits")
            convert = to_decimal(precision, scale)
        if logical == "uuid" and kind == "fixed" and schema.get("size") == 16:
            convert = to_uuid
        if convert is None or plain.read is None:
            return plain
        return AvroType(plain.skip, read_converted(plain.read, convert))
