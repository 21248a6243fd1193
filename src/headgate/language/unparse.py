"""From statements to their canonical text: `parse(unparse(statement)) == statement`.

The text is what the catalog stores and what `explain` and `show` print.
"""

from __future__ import annotations

from headgate.language.literals import write_text
from headgate.language.statements import (
    Advertise,
    Condition,
    CreateFeed,
    Drop,
    Explain,
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
    WindowJoin,
)
from headgate.language.unparse_filter import unparse_filter, write_name, write_number
from headgate.language.unparse_pattern import unparse_pattern
from headgate.model.duration import Duration
from headgate.model.schema import Attribute


def unparse(statement: Statement) -> str:
    """The statement in canonical form, with its ';'."""
    return _unparse(statement) + ";"


def _unparse(statement: Statement) -> str:
    match statement:
        case RegisterFeed(name, url, attributes):
            declared = f" {_attributes(attributes)}" if attributes else ""
            return f"register feed {write_text(url)} as {write_name(name)}{declared}"
        case MaterializeFeed(name, feed, stylesheet):
            applied = f"{write_name(feed)} apply {write_text(stylesheet)}"
            return f"register feed {applied} as {write_name(name)}"
        case RegisterStream(name, format_, path, attributes):
            origin = f"from {format_} {write_text(path)}"
            return f"register stream {write_name(name)} {origin} {_attributes(attributes)}"
        case RegisterTable(name, format_, path, attributes, changes, keep):
            origin = f"from {format_} {write_text(path)}"
            told = f" changes in {write_name(changes)}" if changes is not None else ""
            declared = f"{write_name(name)} {_attributes(attributes)}"
            return f"register table {declared} {origin}{told}{_span(' keep', keep)}"
        case RegisterDocuments(name, format_, path):
            return f"register documents {write_name(name)} from {format_} {write_text(path)}"
        case RegisterOperator():
            return _operator(statement)
        case Advertise(source, filter_):
            return f"advertise {write_name(source)} where {unparse_filter(filter_)}"
        case CreateFeed():
            return _feed(statement)
        case Subscribe():
            return _subscribe(statement)
        case Renew(ticket, validity):
            return f"renew {write_text(ticket)}{_span(' for', validity)}"
        case Unsubscribe(ticket):
            return f"unsubscribe {write_text(ticket)}"
        case Drop(kind, name):
            return f"drop {kind} {write_name(name)}"
        case Show(listing):
            return f"show {listing}"
        case Explain(feed):
            return f"explain feed {write_name(feed)}"


def _attributes(attributes: tuple[Attribute, ...]) -> str:
    return f"({', '.join(_attribute(each) for each in attributes)})"


def _attribute(attribute: Attribute) -> str:
    marks = (" key" if attribute.key else "") + (" payload" if attribute.payload else "")
    return f"{write_name(attribute.name)} {attribute.type}{marks}"


def _operator(operator: RegisterOperator) -> str:
    declared = ", ".join(f"{write_name(each.name)} {each.type}" for each in operator.parameters)
    text = f"register operator {write_name(operator.name)}({declared})"
    if operator.cost is not None:
        text += f" cost {write_number(operator.cost)}"
    if operator.selectivity is not None:
        text += f" selectivity {write_number(operator.selectivity)}"
    return f"{text} from {write_text(operator.target)}"


def _feed(feed: CreateFeed) -> str:
    lines = [f"create feed {write_name(feed.name)}", f"  from {_member(feed.from_clause)}"]
    if feed.pattern is not None:
        lines.append(f"  match {unparse_pattern(feed.pattern)}")
    lines += [f"  {_join(join)}" for join in feed.joins]
    if feed.where:
        lines.append(f"  where {' and '.join(_condition(each) for each in feed.where)}")
    return "\n".join(lines)


def _member(member: GroupMember) -> str:
    match member:
        case StreamRef(name, variable):
            text = write_name(name)
        case StreamRange(first, last):
            return f"{write_name(first)} | ... | {write_name(last)}"
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
    text = f"subscribe to {write_name(subscribe.feed)}"
    if subscribe.stylesheet is not None:
        text += f" apply {write_text(subscribe.stylesheet)}"
    text += f" output {subscribe.output.kind}"
    if subscribe.output.target:
        text += f" {write_text(subscribe.output.target)}"
    text += _span(" every", subscribe.period) + _span(" for", subscribe.validity)
    return text + (f" at site {write_name(subscribe.site)}" if subscribe.site is not None else "")


def _span(word: str, duration: Duration | None) -> str:
    return "" if duration is None else f"{word} {duration}"
