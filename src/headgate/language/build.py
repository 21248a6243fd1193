"""Build statements and tree patterns: one method for each rule of grammar.lark.

`shapes.build` calls a method when its rule is complete, with the values of the rule's parts as
arguments. A method raises `InvalidValue` where the parts do not fit together; parse.py adds the
line and the column. The rules of filters are in build_filters.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headgate.language.build_filters import FilterBuilder
from headgate.language.literals import (
    read_duration,
    read_name,
    read_number,
    read_text,
    read_window_size,
    read_word,
)
from headgate.language.names import Name
from headgate.language.statements import (
    Advertise,
    Condition,
    CreateFeed,
    Drop,
    Explain,
    Format,
    Framing,
    FromClause,
    Group,
    GroupMember,
    Listing,
    MaterializeFeed,
    NameKind,
    Output,
    OutputKind,
    Parameter,
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
    ValueFormat,
    ValueSchema,
    WindowJoin,
)
from headgate.model.atoms import Relation
from headgate.model.duration import Duration
from headgate.model.errors import InvalidValue
from headgate.model.filters import Filter
from headgate.model.schema import Attribute, Schema
from headgate.model.tree_pattern import Axis, Mark, PatternNode, ValuePredicate
from headgate.model.values import Type, Value

Option = tuple[str, object]
ELLIPSIS = "..."
FOLDER_LENGTH_MAX = 200
FOLDERS_MAX = 20
NodePart = frozenset[Mark] | ValuePredicate | PatternNode


class StatementBuilder(FilterBuilder):
    """It has no state, so all threads share one instance."""

    def name(self, token: Name) -> Name:
        return read_name(token)

    def item_variable(self, token: Name) -> Name:
        return Name(token[1:], token.position)

    def url(self, token: Name) -> Name:
        return token

    def target(self, token: Name) -> Name:
        """A text with its position, as it is checked later."""
        return Name(read_text(token), token.position)

    # --- sources, operators, advertisements -----------------------------------------------------

    def start(self, statement: Statement) -> Statement:
        return statement

    def register_feed(
        self,
        url: Name,
        name: Name,
        attributes: tuple[Attribute, ...] | None,
        folders: tuple[str, ...] | None,
    ) -> RegisterFeed:
        return RegisterFeed(name, url, attributes or (), folders or ())

    def folders(self, word: Name, *names: str) -> tuple[str, ...]:
        if word.lower() != "folder":
            raise InvalidValue(f"expected folder, not '{word}'", subject=word)
        if any(not each.strip() or len(each) > FOLDER_LENGTH_MAX for each in names):
            reason = f"a folder has a name of at most {FOLDER_LENGTH_MAX} characters"
            raise InvalidValue(reason, subject=word)
        if len(names) > FOLDERS_MAX:
            raise InvalidValue(f"a feed is in at most {FOLDERS_MAX} folders", subject=word)
        return names

    def materialize_feed(self, feed: Name, stylesheet: str, name: Name) -> MaterializeFeed:
        return MaterializeFeed(name, feed, stylesheet)

    def register_stream(
        self,
        name: Name,
        format_: Name,
        path: str | None,
        values: ValueSchema | None,
        attributes: tuple[Attribute, ...],
    ) -> RegisterStream:
        format_kind = read_word(Format, format_, called="format")
        return RegisterStream(name, format_kind, path or "", attributes, values)

    def register_table(
        self,
        name: Name,
        attributes: tuple[Attribute, ...],
        format_: Name,
        path: str | None,
        values: ValueSchema | None,
        *options: Option,
    ) -> RegisterTable:
        option_values = _option_values(options)
        changes, keep = option_values.get("changes in"), option_values.get("keep")
        assert changes is None or isinstance(changes, str)
        assert keep is None or isinstance(keep, Duration)
        format_kind = read_word(Format, format_, called="format")
        return RegisterTable(name, format_kind, path or "", attributes, changes, keep, values)

    def values(
        self, format_: Name, path: str, option: Name | None, message: str | None
    ) -> ValueSchema:
        format_kind = read_word(ValueFormat, format_, called="format of values")
        if option is None:
            return ValueSchema(format_kind, path)
        if message is not None:
            if option.lower() != "message":
                raise InvalidValue(f"expected message, not '{option}'", subject=option)
            return ValueSchema(format_kind, path, message)
        framing = read_word(Framing, option, called="framing of values")
        return ValueSchema(format_kind, path, framing=framing)

    def changes(self, name: Name) -> Option:
        return "changes in", name

    def keep(self, count: Name, unit: Name) -> Option:
        return "keep", read_duration(count, unit)

    def register_documents(self, name: Name, format_: Name, path: str) -> RegisterDocuments:
        return RegisterDocuments(name, read_word(Format, format_, called="format"), path)

    def register_operator(self, name: Name, *rest: object) -> RegisterOperator:
        *middle, target = rest
        parameters = tuple(each for each in middle if isinstance(each, Parameter))
        options = _option_values(tuple(each for each in middle if isinstance(each, tuple)))
        cost, selectivity = options.get("cost"), options.get("selectivity")
        assert isinstance(target, str)
        assert cost is None or isinstance(cost, float)
        assert selectivity is None or isinstance(selectivity, float)
        return RegisterOperator(name, parameters, target, cost, selectivity)

    def cost(self, number: Name) -> Option:
        return "cost", float(read_number(number))

    def selectivity(self, number: Name) -> Option:
        value = float(read_number(number))
        if value > 1:
            raise InvalidValue("a selectivity is a share of the items, from 0 to 1")
        return "selectivity", value

    def advertise(self, source: Name, filter_: Filter) -> Advertise:
        return Advertise(source, filter_)

    def attributes(self, *attributes: Attribute) -> tuple[Attribute, ...]:
        return Schema(attributes).attributes

    def attribute(self, name: Name, type_: Name, *marks: Name) -> Attribute:
        declared = read_word(Type, type_, called="type")
        wrong = [mark for mark in marks if mark.lower() not in ("key", "payload")]
        if wrong:
            raise InvalidValue(
                f"'{wrong[0]}' is no mark of an attribute: expected key or payload",
                subject=wrong[0],
            )
        folded = [mark.lower() for mark in marks]
        return Attribute(name, declared, key="key" in folded, payload="payload" in folded)

    def parameter(self, name: Name, type_: Name) -> Parameter:
        return Parameter(name, read_word(Type, type_, called="type"))

    # --- feeds ----------------------------------------------------------------------------------

    def create_feed(
        self,
        name: Name,
        from_clause: FromClause,
        pattern: PatternNode | None,
        *rest: WindowJoin | TableJoin | tuple[Condition, ...] | None,
    ) -> CreateFeed:
        *joins, where = rest
        window_joins = tuple(join for join in joins if isinstance(join, WindowJoin))
        table_joins = tuple(join for join in joins if isinstance(join, TableJoin))
        if window_joins and table_joins:
            raise InvalidValue(
                f"feed '{name}' mixes window joins and table joins; make one of them a feed"
            )
        assert where is None or isinstance(where, tuple)
        return CreateFeed(name, from_clause, pattern, window_joins or table_joins, where or ())

    def stream(self, name: Name, variable: Name | None) -> StreamRef:
        return StreamRef(name, variable)

    def group(self, *parts: GroupMember | str | None) -> FromClause:
        *members, variable = parts
        assert variable is None or isinstance(variable, Name)
        expanded = _ranges(tuple(member for member in members if member is not None))
        if len(expanded) == 1 and variable is None and not isinstance(expanded[0], StreamRange):
            return expanded[0]
        return Group(expanded, variable)

    def ellipsis(self, _token: Name) -> str:
        return ELLIPSIS

    def match(self, pattern: PatternNode) -> PatternNode:
        return pattern

    def window_join(
        self, count: Name, unit: Name, secondary: FromClause, primary: Name, predicate: Filter
    ) -> WindowJoin:
        return WindowJoin(read_window_size(count, unit), secondary, primary, predicate)

    def table_join(self, table: StreamRef, *on: Name) -> TableJoin:
        return TableJoin(table, on)

    def where_variables(self, *conditions: Condition) -> tuple[Condition, ...]:
        return conditions

    def where_all(self, filter_: Filter) -> tuple[Condition, ...]:
        return (Condition(None, filter_),)

    def condition(self, variable: Name, filter_: Filter) -> Condition:
        return Condition(variable, filter_)

    # --- tree patterns ----------------------------------------------------------------------------

    def pattern(self, *steps: PatternNode) -> PatternNode:
        return _path(steps)

    def step(self, axis: Axis, node: PatternNode) -> PatternNode:
        return replace(node, axis=axis)

    def axis(self, token: Name) -> Axis:
        return Axis(token)

    def node(self, label: str, *parts: NodePart) -> PatternNode:
        marks = (part for part in parts if isinstance(part, frozenset))
        return PatternNode(
            label,
            marks=frozenset[Mark]().union(*marks),
            predicates=tuple(part for part in parts if isinstance(part, ValuePredicate)),
            children=tuple(part for part in parts if isinstance(part, PatternNode)),
        )

    def label(self, *tokens: Name) -> str:
        return "".join(token.strip("`") for token in tokens)

    def marks(self, *names: Name) -> frozenset[Mark]:
        return frozenset(read_word(Mark, name, called="mark") for name in names)

    def self_predicate(self, relation: Relation, value: Value) -> ValuePredicate:
        return ValuePredicate(relation, value)

    def branch(
        self, axis: Axis | None, node: PatternNode, *rest: PatternNode | Relation | Value | None
    ) -> PatternNode:
        *steps, relation, value = rest
        nodes = [replace(node, axis=axis or Axis.CHILD)]
        nodes += [step for step in steps if isinstance(step, PatternNode)]
        if isinstance(relation, Relation):
            assert value is not None
            assert not isinstance(value, PatternNode)
            predicate = ValuePredicate(relation, value)
            nodes[-1] = replace(nodes[-1], predicates=(*nodes[-1].predicates, predicate))
        return _path(nodes)

    # --- subscriptions and the rest -------------------------------------------------------------

    def subscribe(
        self,
        feed: Name,
        stylesheet: str | None,
        output: Name,
        target: Name | None,
        *options: Option,
    ) -> Subscribe:
        option_values = _option_values(options)
        period, validity, site = (
            option_values.get("every"),
            option_values.get("for"),
            option_values.get("at site"),
        )
        assert period is None or isinstance(period, Duration)
        assert validity is None or isinstance(validity, Duration)
        assert site is None or isinstance(site, str)
        kind = read_word(OutputKind, output, called="output")
        # Without a target, an error points at the kind of output.
        target = Name("", output.position) if target is None else target
        return Subscribe(feed, Output(kind, target), stylesheet, period, validity, site)

    def every(self, count: Name, unit: Name) -> Option:
        return "every", read_duration(count, unit)

    def validity(self, count: Name, unit: Name) -> Option:
        return "for", read_duration(count, unit)

    def site(self, name: Name) -> Option:
        return "at site", name

    def renew(self, ticket: str, count: Name | None, unit: Name | None) -> Renew:
        return Renew(ticket, None if count is None or unit is None else read_duration(count, unit))

    def unsubscribe(self, ticket: str) -> Unsubscribe:
        return Unsubscribe(ticket)

    def drop(self, kind: Name, name: Name) -> Drop:
        return Drop(read_word(NameKind, kind, called="kind of name"), name)

    def show(self, listing: Name) -> Show:
        return Show(read_word(Listing, listing, called="listing"))

    def explain(self, feed: Name) -> Explain:
        return Explain(feed)


def _option_values(options: tuple[Option, ...]) -> dict[str, object]:
    values: dict[str, object] = {}
    for name, value in options:
        if name in values:
            raise InvalidValue(f"'{name}' is given twice")
        values[name] = value
    return values


def _ranges(members: tuple[GroupMember | str, ...]) -> tuple[GroupMember, ...]:
    """`a | b | ... | z` as (a, range from b to z)."""
    expanded: list[GroupMember] = []
    remaining = iter(members)
    for member in remaining:
        if not isinstance(member, str):
            expanded.append(member)
            continue
        before, after = expanded.pop() if expanded else None, next(remaining, None)
        if not isinstance(before, StreamRef) or not isinstance(after, StreamRef):
            raise InvalidValue("'...' stands between two names, as in src1 | ... | src20")
        if before.variable or after.variable:
            raise InvalidValue("a name next to '...' has no variable; name the group instead")
        expanded.append(StreamRange(before.name, after.name))
    return tuple(expanded)


def _path(nodes: Sequence[PatternNode]) -> PatternNode:
    """A path of steps as one tree: each step is the last child of the one before it."""
    below = nodes[-1]
    for node in reversed(nodes[:-1]):
        below = replace(node, children=(*node.children, below))
    return below
