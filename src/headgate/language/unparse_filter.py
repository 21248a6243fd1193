"""From filters, constants and names to their canonical text."""

from __future__ import annotations

import re
from datetime import datetime

from headgate.language.grammar import KEYWORDS
from headgate.language.literals import write_text
from headgate.model.atoms import (
    SIMILARITY_DEFAULT,
    Argument,
    Arithmetic,
    Between,
    Call,
    Comparison,
    Constraint,
    Contains,
    Expression,
    In,
    IsPresent,
    LinkAtom,
    Matches,
    Operand,
    Part,
    Similar,
    StartsWith,
    Variable,
    WindowAttribute,
)
from headgate.model.filters import FALSE, TRUE, And, Filter, Not, Or
from headgate.model.values import Link, Value, Xml

_PLAIN_NAME = re.compile(r"[^\W\d]\w*")


def write_name(name: str) -> str:
    """The name, in backticks where it is a word of the language or no plain word.

    >>> write_name("MuseNews"), write_name("first name"), write_name("From")
    ('MuseNews', '`first name`', '`From`')
    """
    plain = _PLAIN_NAME.fullmatch(name) and name.lower() not in KEYWORDS
    return str(name) if plain else f"`{name}`"


def write_number(number: int | float) -> str:
    """A number that reads back as the same; a whole float keeps no point, for 40.0 equals 40."""
    if isinstance(number, float) and number.is_integer() and abs(number) < 2**53:
        return str(int(number))
    return repr(number)


def write_value(value: Value) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return write_number(value)
        case datetime():
            return f"timestamp '{value.isoformat()}'"
        case bytes():
            return f"bytes '{value.hex()}'"
        case Link():
            return f"link {write_text(value)}"
        case Xml():
            return f"xml {write_text(value)}"
    return write_text(value)


def unparse_filter(filter_: Filter) -> str:
    """The filter as the language writes it; the empty `And` and `Or` as true and false."""
    if filter_ in (TRUE, FALSE):
        return "true" if filter_ == TRUE else "false"
    match filter_:
        case And(parts):
            return " and ".join(_grouped(part, And, Or) for part in parts)
        case Or(parts):
            return " or ".join(_grouped(part, Or) for part in parts)
        case Not(part):
            return f"not {_grouped(part, And, Or)}"
        case Call(operator, arguments):
            return f"{write_name(operator)}({', '.join(map(_argument, arguments))})"
        case Constraint(left, relation, right):
            return f"{_sum(left)} {relation} {_sum(right)}"
    return _attribute_atom(filter_)


def _attribute_atom(atom: Filter) -> str:
    match atom:
        case Comparison(attribute, relation, value, part):
            return f"{_field(attribute, part)} {relation} {_operand(value)}"
        case Between(attribute, low, high, part):
            bounds = f"{write_value(low)} and {write_value(high)}"
            return f"{_field(attribute, part)} between {bounds}"
        case In(attribute, values, part):
            return f"{_field(attribute, part)} in ({', '.join(map(write_value, values))})"
        case IsPresent(attribute):
            return f"{write_name(attribute)} is present"
        case Contains(attribute, text, phrase):
            return f"{_of(attribute)}contains {'phrase ' if phrase else ''}{write_text(text)}"
        case Similar(attribute, wanted, threshold):
            least = "" if threshold == SIMILARITY_DEFAULT else f"({write_number(threshold)})"
            return f"{_of(attribute)}similar{least} {_operand(wanted)}"
        case StartsWith(attribute, prefix):
            return f"{write_name(attribute)} starts with {write_text(prefix)}"
        case Matches(attribute, pattern):
            return f"{_of(attribute)}matches {write_text(pattern)}"
        case LinkAtom(attribute, relation, urls):
            listed = ", ".join(map(write_text, urls))
            return f"{_of(attribute)}{relation} {f'({listed})' if len(urls) > 1 else listed}"
    raise AssertionError(f"{atom!r} is no atom")


def _grouped(part: Filter, *loose: type[And | Or]) -> str:
    """A part in parentheses, if it is an `and` or `or` that would be read differently without."""
    text = unparse_filter(part)
    return f"({text})" if isinstance(part, loose) and part not in (TRUE, FALSE) else text


def _of(attribute: str | None) -> str:
    return "" if attribute is None else write_name(attribute) + " "


def _field(attribute: str, part: Part | None) -> str:
    return write_name(attribute) + (f".{part}" if part else "")


def _operand(operand: Operand) -> str:
    if isinstance(operand, WindowAttribute):
        return f"window.{write_name(operand.name)}"
    return write_value(operand)


def _argument(argument: Argument) -> str:
    return f"?{argument.name}" if isinstance(argument, Variable) else write_value(argument)


def _sum(expression: Expression) -> str:
    match expression:
        case Variable(name):
            return f"?{name}"
        case Arithmetic(sign, left, right):
            # The grammar is left-associative: a right operand of the same rank needs parentheses.
            tight = sign in "*/"
            left_text = _in_sum(left, loose="+-" if tight else "")
            right_text = _in_sum(right, loose="+-*/" if tight else "+-")
            return f"{left_text} {sign} {right_text}"
    return write_value(expression)


def _in_sum(expression: Expression, *, loose: str) -> str:
    text = _sum(expression)
    wrap = isinstance(expression, Arithmetic) and expression.sign in loose
    return f"({text})" if wrap else text
