"""Write statements, filters and tree patterns as canonical text.

The invariant is `parse(unparse(statement)) == statement`. The catalog stores this text, and
`explain` and `show` print it.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache

from headgate.language.literals import KEYWORDS, write_text
from headgate.language.names import split_definition
from headgate.language.statements import (
    Advertise,
    Condition,
    CreateFeed,
    Drop,
    Explain,
    Format,
    GroupMember,
    MaterializeFeed,
    RegisterDocuments,
    RegisterFeed,
    RegisterOperator,
    RegisterStream,
    RegisterTable,
    Renew,
    Show,
    Statement,
    StreamRange,
    StreamRef,
    Subscribe,
    TableJoin,
    Unsubscribe,
    ValueSchema,
    WindowJoin,
)
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
    Similar,
    StartsWith,
    TimestampPart,
    Variable,
    WindowAttribute,
)
from headgate.model.duration import Duration
from headgate.model.filters import FALSE, TRUE, And, Filter, Not, Or
from headgate.model.schema import Attribute
from headgate.model.tree_pattern import Axis, Mark, PatternNode, ValuePredicate
from headgate.model.values import Link, Value, Xml

_PLAIN_NAME = re.compile(r"[^\W\d]\w*")
NAMES_REMEMBERED = 4_096
"""A script of many subscriptions names few feeds."""


@lru_cache(maxsize=NAMES_REMEMBERED)
def write_name(name: str) -> str:
    """The name, in backticks where it is a word of the language or no plain word.

    >>> write_name("MuseNews"), write_name("first name"), write_name("From")
    ('MuseNews', '`first name`', '`From`')
    """
    plain = _PLAIN_NAME.fullmatch(name) and name.lower() not in KEYWORDS
    return str(name) if plain else f"`{name}`"


@lru_cache(maxsize=NAMES_REMEMBERED)
def write_definition(name: str) -> str:
    """The name of a definition, with the tenant before it if it is not of the local one.

    >>> write_definition("News"), write_definition("acme.Rock news")
    ('News', 'acme.`Rock news`')
    """
    tenant, rest = split_definition(name)
    return f"{write_name(tenant)}.{write_name(rest)}" if tenant else write_name(name)


def write_number(number: int | float) -> str:
    """A number that reads back as the same. A whole float has no point: 40.0 is written 40."""
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
            return f"{write_definition(operator)}({', '.join(map(_argument, arguments))})"
        case Constraint(left, relation, right):
            return f"{_expression(left)} {relation} {_expression(right)}"
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
            word = "contains phrase" if phrase else "contains"
            return f"{_attribute_prefix(attribute)}{word} {write_text(text)}"
        case Similar(attribute, text, threshold):
            least = "" if threshold == SIMILARITY_DEFAULT else f"({write_number(threshold)})"
            return f"{_attribute_prefix(attribute)}similar{least} {_operand(text)}"
        case StartsWith(attribute, prefix):
            return f"{write_name(attribute)} starts with {write_text(prefix)}"
        case Matches(attribute, pattern):
            return f"{_attribute_prefix(attribute)}matches {write_text(pattern)}"
        case LinkAtom(attribute, relation, urls):
            listed = ", ".join(map(write_text, urls))
            targets = f"({listed})" if len(urls) > 1 else listed
            return f"{_attribute_prefix(attribute)}{relation} {targets}"
    raise AssertionError(f"{atom!r} is no atom")


def _grouped(part: Filter, *loose: type[And | Or]) -> str:
    """A part in parentheses, if it is an `and` or `or` that would be read differently without."""
    text = unparse_filter(part)
    return f"({text})" if isinstance(part, loose) and part not in (TRUE, FALSE) else text


def _attribute_prefix(attribute: str | None) -> str:
    return "" if attribute is None else write_name(attribute) + " "


def _field(attribute: str, part: TimestampPart | None) -> str:
    return write_name(attribute) + (f".{part}" if part else "")


def _operand(operand: Operand) -> str:
    if isinstance(operand, WindowAttribute):
        return f"window.{write_name(operand.name)}"
    return write_value(operand)


def _argument(argument: Argument) -> str:
    return f"?{argument.name}" if isinstance(argument, Variable) else write_value(argument)


def _expression(expression: Expression) -> str:
    match expression:
        case Variable(name):
            return f"?{name}"
        case Arithmetic(sign, left, right):
            # The grammar is left-associative: a right operand of the same rank needs parentheses.
            tight = sign in "*/"
            left_text = _operand_of_expression(left, loose="+-" if tight else "")
            right_text = _operand_of_expression(right, loose="+-*/" if tight else "+-")
            return f"{left_text} {sign} {right_text}"
    return write_value(expression)


def _operand_of_expression(expression: Expression, *, loose: str) -> str:
    text = _expression(expression)
    wrap = isinstance(expression, Arithmetic) and expression.sign in loose
    return f"({text})" if wrap else text


# --- tree patterns --------------------------------------------------------------------------------

_PLAIN_LABEL = re.compile(r"@?[^\W\d]\w*(:[^\W\d]\w*)?|\*")


def unparse_pattern(pattern: PatternNode) -> str:
    """The whole pattern, beginning with its axis."""
    return pattern.axis + _node(pattern)


def _node(node: PatternNode) -> str:
    text = _label(node.label) + _marks(node.marks)
    text += "".join(f"[. {_predicate(each)}]" for each in node.predicates)
    if not node.children:
        return text
    *branches, last = node.children
    text += "".join(f"[{_branch(branch)}]" for branch in branches)
    return text + last.axis + _node(last)


def _branch(node: PatternNode) -> str:
    """A branch; the '/' before its first node is left out, and a single predicate follows it."""
    axis = "" if node.axis is Axis.CHILD else node.axis
    if len(node.predicates) == 1 and not node.children:
        text = _label(node.label) + _marks(node.marks)
        return f"{axis}{text} {_predicate(node.predicates[0])}"
    return axis + _node(node)


def _label(label: str) -> str:
    return label if _PLAIN_LABEL.fullmatch(label) else f"`{label}`"


def _marks(marks: frozenset[Mark]) -> str:
    return f"{{{', '.join(mark for mark in Mark if mark in marks)}}}" if marks else ""


def _predicate(predicate: ValuePredicate) -> str:
    return f"{predicate.relation} {write_value(predicate.value)}"


# --- statements -----------------------------------------------------------------------------------


def unparse(statement: Statement) -> str:
    """The statement in canonical form, with its ';'."""
    return _unparse(statement) + ";"


def _unparse(statement: Statement) -> str:
    match statement:
        case RegisterFeed(name, url, attributes, folders):
            declared = f" {_attributes(attributes)}" if attributes else ""
            listed = f" in folder {', '.join(map(write_text, folders))}" if folders else ""
            return f"register feed {write_text(url)} as {write_definition(name)}{declared}{listed}"
        case MaterializeFeed(name, feed, stylesheet):
            applied = f"{write_definition(feed)} apply {write_text(stylesheet)}"
            return f"register feed {applied} as {write_definition(name)}"
        case RegisterStream(name, format_, path, attributes, values):
            origin = _origin(format_, path, values)
            return f"register stream {write_definition(name)} {origin} {_attributes(attributes)}"
        case RegisterTable(name, format_, path, attributes, changes, keep, values):
            origin = _origin(format_, path, values)
            changing = f" changes in {write_name(changes)}" if changes is not None else ""
            declared = f"{write_definition(name)} {_attributes(attributes)}"
            return f"register table {declared} {origin}{changing}{_span(' keep', keep)}"
        case RegisterDocuments(name, format_, path):
            return f"register documents {write_definition(name)} from {format_} {write_text(path)}"
        case RegisterOperator():
            return _operator(statement)
        case Advertise(source, filter_):
            return f"advertise {write_definition(source)} where {unparse_filter(filter_)}"
        case CreateFeed():
            return _feed(statement)
        case Subscribe():
            return _subscribe(statement)
        case Renew(ticket, validity):
            return f"renew {write_text(ticket)}{_span(' for', validity)}"
        case Unsubscribe(ticket):
            return f"unsubscribe {write_text(ticket)}"
        case Drop(kind, name):
            return f"drop {kind} {write_definition(name)}"
        case Show(listing):
            return f"show {listing}"
        case Explain(feed):
            return f"explain feed {write_definition(feed)}"


def _attributes(attributes: tuple[Attribute, ...]) -> str:
    return f"({', '.join(_attribute(each) for each in attributes)})"


def _attribute(attribute: Attribute) -> str:
    marks = (" key" if attribute.key else "") + (" payload" if attribute.payload else "")
    return f"{write_name(attribute.name)} {attribute.type}{marks}"


def _origin(format_: Format, path: str, values: ValueSchema | None) -> str:
    text = f"from {format_} {write_text(path)}" if path else f"from {format_}"
    if values is None:
        return text
    text += f" {values.format} {write_text(values.path)}"
    if values.message:
        return f"{text} message {write_text(values.message)}"
    return f"{text} {values.framing}" if values.framing else text


def _operator(operator: RegisterOperator) -> str:
    declared = ", ".join(f"{write_name(each.name)} {each.type}" for each in operator.parameters)
    text = f"register operator {write_definition(operator.name)}({declared})"
    if operator.cost is not None:
        text += f" cost {write_number(operator.cost)}"
    if operator.selectivity is not None:
        text += f" selectivity {write_number(operator.selectivity)}"
    return f"{text} from {write_text(operator.target)}"


def _feed(feed: CreateFeed) -> str:
    lines = [f"create feed {write_definition(feed.name)}", f"  from {_member(feed.from_clause)}"]
    if feed.pattern is not None:
        lines.append(f"  match {unparse_pattern(feed.pattern)}")
    lines += [f"  {_join(join)}" for join in feed.joins]
    if feed.where:
        lines.append(f"  where {' and '.join(_condition(each) for each in feed.where)}")
    return "\n".join(lines)


def _member(member: GroupMember) -> str:
    match member:
        case StreamRef(name, variable):
            text = write_definition(name)
        case StreamRange(first, last):
            return f"{write_definition(first)} | ... | {write_definition(last)}"
        case _:
            text, variable = f"({' | '.join(map(_member, member.members))})", member.variable
    return f"{text} as ${variable}" if variable else text


def _join(join: WindowJoin | TableJoin) -> str:
    match join:
        case WindowJoin(window, secondary, primary, predicate):
            condition = f"${primary}[{unparse_filter(predicate)}]"
            return f"join last {window} on {_member(secondary)} with {condition}"
        case TableJoin(table, on):
            return f"join {_member(table)} on {', '.join(map(write_name, on))}"


def _condition(condition: Condition) -> str:
    text = unparse_filter(condition.filter)
    return text if condition.variable is None else f"${condition.variable}[{text}]"


def _subscribe(subscribe: Subscribe) -> str:
    text = f"subscribe to {write_definition(subscribe.feed)}"
    if subscribe.stylesheet is not None:
        text += f" apply {write_text(subscribe.stylesheet)}"
    text += f" output {subscribe.output.kind}"
    if subscribe.output.target:
        text += f" {write_text(subscribe.output.target)}"
    text += _span(" every", subscribe.period) + _span(" for", subscribe.validity)
    return text + (f" at site {write_name(subscribe.site)}" if subscribe.site is not None else "")


def _span(word: str, duration: Duration | None) -> str:
    return "" if duration is None else f"{word} {duration}"
