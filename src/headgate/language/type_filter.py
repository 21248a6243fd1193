"""Check a filter against schemas: attributes must exist, constants get their attribute's type."""

from __future__ import annotations

from dataclasses import dataclass, replace

from headgate.language.names import error_at
from headgate.language.schemas import Definitions, Schemas
from headgate.language.statements import RegisterOperator
from headgate.model.atoms import (
    Argument,
    Atom,
    AttributeAtom,
    Between,
    Call,
    Comparison,
    Constraint,
    Contains,
    In,
    IsPresent,
    LinkAtom,
    Matches,
    Similar,
    StartsWith,
    TimestampPart,
    Variable,
    WindowAttribute,
)
from headgate.model.errors import InvalidValue, LanguageError, did_you_mean
from headgate.model.filters import Filter, check_safety, map_atoms
from headgate.model.schema import Attribute
from headgate.model.values import Kind, Type, coerce, kind_of_type, with_article

_TEXT_TYPES = (Type.TEXT, Type.XML)
_LINK_TYPES = (Type.LINK, Type.TEXT, Type.XML)


def type_filter(
    filter_: Filter,
    schemas: Schemas,
    definitions: Definitions,
    *,
    window: Schemas | None = None,
) -> Filter:
    """The typed filter over items of these schemas; in a join, `window` is those of the window."""
    context = _Context(schemas, definitions, window)
    typed = map_atoms(filter_, context.atom)
    try:
        check_safety(typed)
    except InvalidValue as invalid:
        raise error_at(invalid.subject, str(invalid)) from None
    return typed


@dataclass(frozen=True, slots=True)
class _Context:
    schemas: Schemas
    definitions: Definitions
    window: Schemas | None

    def atom(self, atom: Atom) -> Atom:
        if isinstance(atom, Constraint):
            return atom
        blamed = atom.operator if isinstance(atom, Call) else atom.attribute
        try:
            return self._call(atom) if isinstance(atom, Call) else self._attribute_atom(atom)
        except InvalidValue as invalid:
            raise error_at(blamed, str(invalid)) from None

    def _attribute_atom(self, atom: AttributeAtom) -> Atom:
        attribute = None if atom.attribute is None else _find(atom.attribute, self.schemas)
        if attribute is not None and attribute.payload and not isinstance(atom, IsPresent):
            raise InvalidValue(f"'{attribute.name}' is payload: it is carried, never compared")
        match atom:
            case Comparison(name, _, WindowAttribute() as operand, part):
                self._comparable_with_window(_compared(_find(name, self.schemas), part), operand)
                return atom
            case Comparison(name, _, value, part):
                assert not isinstance(value, WindowAttribute)
                type_ = _compared(_find(name, self.schemas), part)
                return replace(atom, value=coerce(value, type_))
            case Between(name, low, high, part):
                type_ = _compared(_find(name, self.schemas), part)
                return replace(atom, low=coerce(low, type_), high=coerce(high, type_))
            case In(name, values, part):
                type_ = _compared(_find(name, self.schemas), part)
                return replace(atom, values=tuple(coerce(value, type_) for value in values))
            case Contains() | StartsWith() | Matches() | Similar():
                _check_type(attribute, _TEXT_TYPES, hint="; a link is tested with 'references'")
            case LinkAtom():
                _check_type(attribute, _LINK_TYPES)
        if isinstance(atom, Similar) and isinstance(atom.text, WindowAttribute):
            _check_type(self._window_attribute(atom.text), _TEXT_TYPES)
        return atom

    def _comparable_with_window(self, type_: Type, operand: WindowAttribute) -> None:
        compared = self._window_attribute(operand)
        if kind_of_type(compared.type) is not kind_of_type(type_):
            raise InvalidValue(
                f"{with_article(type_)} cannot be compared with "
                f"the {compared.type} '{compared.name}'"
            )

    def _window_attribute(self, operand: WindowAttribute) -> Attribute:
        if self.window is None:
            raise InvalidValue(
                f"'window.{operand.name}' is only known in the 'with' of a join",
                subject=operand.name,
            )
        return _find(operand.name, self.window)

    def _call(self, call: Call) -> Call:
        operator = self.definitions.get(call.operator)
        if not isinstance(operator, RegisterOperator):
            operators = (
                name
                for name in self.definitions
                if isinstance(self.definitions[name], RegisterOperator)
            )
            raise error_at(
                call.operator,
                f"there is no operator '{call.operator}'",
                hint=did_you_mean(call.operator, operators),
            )
        count, given = len(operator.parameters), len(call.arguments)
        if count != given:
            raise InvalidValue(
                f"operator '{call.operator}' takes {count} argument{'' if count == 1 else 's'}, "
                f"not {given}"
            )
        types = (parameter.type for parameter in operator.parameters)
        return Call(call.operator, tuple(map(_argument, call.arguments, types)))


def _argument(argument: Argument, type_: Type) -> Argument:
    return argument if isinstance(argument, Variable) else coerce(argument, type_)


def _compared(attribute: Attribute, part: TimestampPart | None) -> Type:
    """The type that constants are compared with: the attribute's, or that of a timestamp's part."""
    if part is None:
        return attribute.type
    if attribute.type is not Type.TIMESTAMP:
        raise InvalidValue(f"'{attribute.name}' is {attribute.type}: only a timestamp has a {part}")
    return Type.TIMESTAMP if part is TimestampPart.DATE else Type.INT


def _check_type(attribute: Attribute | None, types: tuple[Type, ...], *, hint: str = "") -> None:
    if attribute is not None and attribute.type not in types:
        expected = " or ".join(types[:-1] if len(types) > 2 else types[:1])
        shown = hint if attribute.type is Type.LINK else ""
        raise InvalidValue(f"'{attribute.name}' is {attribute.type}, not {expected}{shown}")


def _find(name: str, schemas: Schemas) -> Attribute:
    """The attribute, which a source must declare, and all that declare it with one kind."""
    by_kind: dict[Kind, tuple[Attribute, str]] = {}
    for schema, source in schemas.items():
        attribute = schema.get(name)
        if attribute is not None:
            by_kind.setdefault(kind_of_type(attribute.type), (attribute, source))
    if not by_kind:
        raise _unknown_attribute(name, schemas)
    if len(by_kind) > 1:
        (first, source), (second, second_source), *_ = by_kind.values()
        raise InvalidValue(
            f"'{name}' is {first.type} in '{source}' but {second.type} in '{second_source}'"
        )
    return next(iter(by_kind.values()))[0]


def _unknown_attribute(name: str, schemas: Schemas) -> LanguageError:
    known = sorted({each for schema in schemas for each in schema.names})
    sources = list(schemas.values())
    place = f" in '{sources[0]}'" if len(sources) == 1 else " in any of its sources"
    hint = did_you_mean(name, known) or f"known are {', '.join(known[:12])}"
    return error_at(
        name, f"there is no attribute '{name}'{place if any(sources) else ''}", hint=hint
    )
