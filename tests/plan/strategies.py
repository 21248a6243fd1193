"""Generated filters, items, plans and definitions for the tests of plans."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from headgate.language.statements import (
    Condition,
    CreateFeed,
    Format,
    Group,
    RegisterDocuments,
    RegisterStream,
    RegisterTable,
    Statement,
    StreamRef,
    TableJoin,
    WindowJoin,
)
from headgate.model.atoms import (
    Call,
    Comparison,
    Constraint,
    Contains,
    In,
    IsPresent,
    Matches,
    Relation,
    Variable,
    WindowAttribute,
)
from headgate.model.duration import Duration, ItemCount, Unit
from headgate.model.filters import FALSE, TRUE, And, Filter, Not, Or, needs
from headgate.model.items import Item
from headgate.model.schema import Attribute
from headgate.model.tree_pattern import Axis, PatternNode, ValuePredicate
from headgate.model.values import Type, Xml
from headgate.plan import algebra
from headgate.plan.algebra import Plan, Side

STREAMS = ("s1", "s2", "s3")
TABLES = {"t1": ("k", "x", "d"), "t2": ("k", "y", "d"), "t3": ("k", "d", "z")}
DOCUMENTS = "docs"
START = datetime(2026, 1, 1, tzinfo=UTC)


def numbers_below(item: Item, _: object) -> list[tuple[int]]:
    """Binds its variable to every number from 0 to the item's `a`."""
    a = item.attributes.get("a")
    return [(n,) for n in range(a + 1)] if isinstance(a, int) else []


def has_b(item: Item) -> bool:
    return "b" in item.attributes


OPERATORS = {"below": numbers_below, "has_b": has_b}

# --- filters --------------------------------------------------------------------------------------

small = st.integers(0, 3)
relations = st.sampled_from(list(Relation))
texts = st.sampled_from(["rock", "Rock", "jazz concert", "rock concert"])


def atoms_on(attributes: tuple[str, ...]) -> st.SearchStrategy[Filter]:
    names = st.sampled_from(attributes)
    return st.one_of(
        st.builds(Comparison, names, relations, small),
        st.builds(In, names, st.lists(small, min_size=1, max_size=2).map(tuple)),
        st.builds(IsPresent, names),
    )


item_atoms = st.one_of(
    atoms_on(("a", "b")),
    st.builds(Contains, st.sampled_from(["title", None]), texts),
    st.just(Call("has_b")),
)
variables = st.sampled_from(["p", "q"]).map(Variable)
variable_atoms = st.one_of(
    st.builds(Call, st.just("below"), variables.map(lambda v: (v,))),
    st.builds(Constraint, variables, relations, small),
)
window_atoms = st.one_of(
    st.builds(Comparison, st.just("a"), relations, st.just(WindowAttribute("a"))),
    st.builds(
        Comparison, st.just("title"), st.just(Relation.EQUAL), st.just(WindowAttribute("title"))
    ),
)


def boolean(leaves: st.SearchStrategy[Filter], *, size: int = 6) -> st.SearchStrategy[Filter]:
    return st.recursive(
        leaves,
        lambda parts: st.one_of(
            st.lists(parts, max_size=3).map(lambda each: And(tuple(each))),
            st.lists(parts, max_size=3).map(lambda each: Or(tuple(each))),
            parts.map(Not),
        ),
        max_leaves=size,
    )


def made_safe(filter_: Filter) -> Filter:
    """The filter, in conjunction with calls that bind its variables."""
    calls = [Call("below", (Variable(name),)) for name in sorted(needs(filter_))]
    return And((*calls, filter_)) if calls else filter_


plain_filters = boolean(item_atoms)
filters = st.one_of(
    plain_filters,
    boolean(st.one_of(item_atoms, variable_atoms)).map(made_safe),
    st.sampled_from([TRUE, FALSE]),
)
join_predicates = boolean(st.one_of(window_atoms, window_atoms, item_atoms, variable_atoms), size=5)
join_predicates = st.one_of(window_atoms, join_predicates.map(made_safe))
window_sizes = st.one_of(
    st.builds(Duration, st.integers(1, 4), st.just(Unit.HOUR)),
    st.builds(ItemCount, st.integers(1, 3)),
)
patterns = st.sampled_from(
    [
        PatternNode("topic"),
        PatternNode("news", Axis.CHILD, children=(PatternNode("topic", Axis.CHILD),)),
        PatternNode("topic", predicates=(ValuePredicate(Relation.EQUAL, "acme"),)),
    ]
)

# --- items ----------------------------------------------------------------------------------------


def optional(values: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.one_of(st.none(), values, values)


@st.composite
def streams(draw: st.DrawFn) -> dict[str, list[Item]]:
    """A few items for each source; attributes are often missing."""
    documents = st.sampled_from(["<news><topic>ACME</topic></news>", "<topic/>", "<a", "<b/>"])
    values: dict[str, dict[str, st.SearchStrategy[object]]] = {
        name: {"a": small, "b": small, "title": texts} for name in STREAMS
    }
    keys = st.sampled_from(["rock", " ROCK", "jazz"])
    for table, attributes in TABLES.items():
        values[table] = {name: keys if name == "k" else small for name in attributes}
    values[DOCUMENTS] = {"document": documents.map(Xml), "a": small}
    return {source: draw(items_of(source, each)) for source, each in values.items()}


@st.composite
def items_of(
    draw: st.DrawFn, source: str, values: dict[str, st.SearchStrategy[object]]
) -> list[Item]:
    items = []
    for number in range(draw(st.integers(0, 4))):
        drawn = {name: draw(optional(each)) for name, each in values.items()}
        attributes = {name: value for name, value in drawn.items() if value is not None}
        time = START + timedelta(hours=draw(st.integers(0, 5)))
        items.append(Item(f"{number}", source, time, attributes))
    return items


def contents(items: frozenset[Item]) -> frozenset[object]:
    """Items with their attributes, which `Item` itself does not compare."""
    return frozenset(
        (
            item.id,
            item.source,
            item.time,
            frozenset((name, repr(value)) for name, value in item.attributes.items()),
            frozenset((each.join, contents(each.items)) for each in item.annotations),
        )
        for item in items
    )


# --- plans ----------------------------------------------------------------------------------------

sources = st.sampled_from([*STREAMS, DOCUMENTS]).map(algebra.Source)
table_atoms = st.one_of(
    atoms_on(("x", "y", "z", "t1_d", "t2_d", "d")),
    st.builds(Contains, st.sampled_from(["k", None]), texts),
    st.builds(Matches, st.just("k"), st.sampled_from(["rock", "ROCK", "^ "])),
    st.just(Call("has_b")),
)


def filtered_table_joins() -> st.SearchStrategy[Plan]:
    """A conjunction over a table join whose sides let everything through."""
    sides = st.lists(st.sampled_from(list(TABLES)), min_size=2, max_size=3, unique=True)
    joins = sides.map(
        lambda tables: algebra.NaturalJoin(
            ("k",),
            tuple(Side(name, TABLES[name]) for name in tables),
            tuple(map(algebra.Source, tables)),
        )
    )
    parts = st.lists(st.one_of(table_atoms, boolean(table_atoms, size=3)), min_size=1, max_size=3)
    return st.builds(algebra.Filter, parts.map(lambda each: And(tuple(each))), joins)


def tables() -> st.SearchStrategy[dict[str, list[Item]]]:
    """Rows that often join, with keys that are equal but spelt differently."""
    keys = st.sampled_from(["rock", " ROCK", "Rock"])
    values = {
        table: {name: keys if name == "k" else small for name in names}
        for table, names in TABLES.items()
    }
    return st.fixed_dictionaries({name: items_of(name, each) for name, each in values.items()})


@st.composite
def table_joins(draw: st.DrawFn) -> Plan:
    tables = draw(st.permutations(list(TABLES)))[: draw(st.integers(2, 3))]
    join: Plan = algebra.NaturalJoin(
        draw(st.sampled_from([("k",), ("k", "d")])),
        tuple(Side(name, TABLES[name]) for name in tables),
        tuple(
            algebra.Filter(draw(boolean(atoms_on(("x", "d", "k")), size=3)), algebra.Source(name))
            for name in tables
        ),
    )
    return algebra.Filter(draw(boolean(table_atoms)), join) if draw(st.booleans()) else join


def plans() -> st.SearchStrategy[Plan]:
    """Plans of any shape, also such as no statement would give."""

    def larger(inputs: st.SearchStrategy[Plan]) -> st.SearchStrategy[Plan]:
        windows = st.builds(algebra.Window, window_sizes, inputs)
        ids = st.sampled_from(["F#1", "G#1", "G#2"])
        return st.one_of(
            st.builds(algebra.Filter, filters, inputs),
            st.lists(inputs, max_size=3).map(lambda each: algebra.Union(tuple(each))),
            st.builds(algebra.Join, ids, join_predicates, inputs, windows),
            st.builds(algebra.Match, st.just("F#match"), patterns, inputs),
        )

    return st.recursive(st.one_of(sources, sources, table_joins()), larger, max_leaves=6)


# --- definitions ----------------------------------------------------------------------------------


def registered() -> dict[str, Statement]:
    """The sources that every generated definition is over."""
    attributes = tuple(Attribute(name, Type.INT) for name in ("a", "b"))
    found: dict[str, Statement] = {
        name: RegisterStream(name, Format.JSON, "*.json", attributes) for name in STREAMS
    }
    for table, names in TABLES.items():
        columns = tuple(Attribute(name, Type.INT) for name in names)
        found[table] = RegisterTable(table, Format.JSON, "*.json", columns)
    found[DOCUMENTS] = RegisterDocuments(DOCUMENTS, Format.XML, "*.xml")
    return found


@st.composite
def definitions(draw: st.DrawFn) -> dict[str, Statement]:
    """Sources and up to five feeds, each over those before it. The last one is called 'last'."""
    found = registered()
    usable = [*STREAMS, DOCUMENTS]
    for name in [*(f"f{number}" for number in range(draw(st.integers(0, 4)))), "last"]:
        table_feed = name != "last" and draw(st.integers(0, 4)) == 0
        found[name] = draw(table_feeds(name) if table_feed else stream_feeds(name, usable))
        usable.append(name)
    return found


@st.composite
def table_feeds(draw: st.DrawFn, name: str) -> CreateFeed:
    tables = draw(st.permutations(list(TABLES)))[: draw(st.integers(2, 3))]
    where = [
        Condition(table, draw(boolean(atoms_on(TABLES[table]), size=3)))
        for table in tables
        if draw(st.booleans())
    ]
    if draw(st.booleans()):
        where.append(Condition(None, draw(boolean(table_atoms))))
    joins = tuple(TableJoin(StreamRef(table, table), ("k",)) for table in tables[1:])
    return CreateFeed(name, StreamRef(tables[0], tables[0]), None, joins, tuple(where))


@st.composite
def stream_feeds(draw: st.DrawFn, name: str, usable: list[str]) -> CreateFeed:
    names = (f"v{number}" for number in range(1000))
    clause = draw(groups(usable, names, depth=2))
    primaries = list(variables_in(clause))
    joins = []
    for _ in range(draw(st.integers(0, 2)) if primaries else 0):
        secondary = draw(groups(usable, names, depth=1))
        primary = draw(st.sampled_from(primaries))
        joins.append(WindowJoin(draw(window_sizes), secondary, primary, draw(join_predicates)))
    conditions = [
        *variables_in(clause),
        *(variable for join in joins for variable in variables_in(join.secondary)),
        None,
    ]
    picked = draw(st.lists(st.sampled_from(conditions), max_size=4))
    where = tuple(Condition(variable, draw(filters)) for variable in picked)
    pattern = draw(patterns) if draw(st.integers(0, 4)) == 0 else None
    return CreateFeed(name, clause, pattern, tuple(joins), where)


@st.composite
def groups(
    draw: st.DrawFn, usable: list[str], names: Iterator[str], *, depth: int
) -> Group | StreamRef:
    variable = next(names) if draw(st.booleans()) else None
    if depth == 0 or draw(st.booleans()):
        return StreamRef(draw(st.sampled_from(usable)), variable)
    members = [draw(groups(usable, names, depth=depth - 1)) for _ in range(draw(st.integers(1, 3)))]
    return Group(tuple(members), variable)


def variables_in(clause: Group | StreamRef) -> Iterator[str]:
    if clause.variable is not None:
        yield clause.variable
    if isinstance(clause, Group):
        for member in clause.members:
            yield from variables_in(member)
