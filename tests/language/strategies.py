"""Generated statements of every form, within the limits."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import strategies as st

from headgate.language import statements as s
from headgate.model import atoms as a
from headgate.model.duration import Duration, ItemCount, Unit
from headgate.model.filters import And, Filter, Not, Or
from headgate.model.schema import Attribute
from headgate.model.tree_pattern import Axis, Mark, PatternNode, ValuePredicate
from headgate.model.values import INT_MAX, INT_MIN, Link, Type, Xml

# Names: plain ones, words of the language, and ones that need backticks.
names = st.one_of(
    st.sampled_from(
        ["title", "price", "MuseNews", "été", "from", "In", "x y", "a-b", "7up", "a.b"]
    ),
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True),
)
plain_names = st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
word_texts = st.builds(lambda text: text + " rock", texts)
numbers = st.one_of(
    st.integers(INT_MIN + 1, INT_MAX), st.floats(allow_nan=False, allow_infinity=False)
)
timestamps = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))
kinds_of_values = {
    "number": numbers,
    "text": texts,
    "timestamp": timestamps,
    "bytes": st.binary(max_size=8),
    "link": texts.map(Link),
    "xml": texts.map(Xml),
    "bool": st.booleans(),
}
values = st.one_of(*kinds_of_values.values())
ordered_kinds = st.sampled_from(["number", "text", "timestamp", "bytes"])
relations = st.sampled_from(a.Relation)
equalities = st.sampled_from([a.Relation.EQUAL, a.Relation.NOT_EQUAL])
parts = st.none() | st.sampled_from(a.TimestampPart)
window_attributes = st.builds(a.WindowAttribute, names)
maybe_names = st.none() | names


@st.composite
def betweens(draw: st.DrawFn) -> a.Between:
    from headgate.model.values import comparable

    kind = kinds_of_values[draw(ordered_kinds)]
    low, high = sorted([draw(kind), draw(kind)], key=comparable)
    return a.Between(draw(names), low, high, draw(parts))


ins = st.sampled_from(sorted(kinds_of_values)).flatmap(
    lambda kind: st.builds(
        a.In, names, st.lists(kinds_of_values[kind], min_size=1, max_size=4).map(tuple), parts
    )
)
variables = st.builds(a.Variable, plain_names)
expressions = st.recursive(
    numbers | variables,
    lambda inner: st.builds(a.Arithmetic, st.sampled_from("+-*/"), inner, inner),
    max_leaves=6,
)
constraints = st.one_of(
    st.builds(a.Constraint, variables, relations, values),
    st.builds(
        a.Constraint,
        expressions,
        relations,
        st.builds(a.Arithmetic, st.just("+"), variables, expressions),
    ),
)
thresholds = st.floats(0.01, 1)
atoms = st.one_of(
    st.builds(a.Comparison, names, relations, st.one_of(numbers, texts, timestamps), parts),
    st.builds(a.Comparison, names, equalities, values, parts),
    st.builds(a.Comparison, names, relations, window_attributes),
    betweens(),
    ins,
    st.builds(a.IsPresent, names),
    st.builds(a.Contains, maybe_names, word_texts, st.booleans()),
    st.builds(a.Similar, maybe_names, word_texts | window_attributes, thresholds),
    st.builds(a.StartsWith, names, word_texts),
    st.builds(a.Matches, maybe_names, st.sampled_from([r"^a.*\d+'$", "(?i)muse", ""])),
    st.builds(a.LinkAtom, maybe_names, st.just(a.LinkRelation.EXTENDS), st.tuples(word_texts)),
    st.builds(
        a.LinkAtom,
        maybe_names,
        st.just(a.LinkRelation.SHARES_LINK),
        st.lists(word_texts, min_size=1, max_size=3).map(tuple),
    ),
    st.builds(a.Call, names, st.lists(values | variables, max_size=3).map(tuple)),
    constraints,
)
filters: st.SearchStrategy[Filter] = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=4).map(lambda ps: And(tuple(ps))),
        st.lists(inner, min_size=2, max_size=4).map(lambda ps: Or(tuple(ps))),
        st.builds(Not, inner),
    ),
    max_leaves=8,
)
labels = st.sampled_from(["item", "ns:item", "*", "feed", "match"])
leaf_nodes = st.builds(
    PatternNode,
    labels | st.just("@id"),
    st.sampled_from(Axis),
    st.frozensets(st.sampled_from(Mark)),
    st.lists(st.builds(ValuePredicate, relations, texts | numbers), max_size=2).map(tuple),
)
patterns = st.recursive(
    leaf_nodes,
    lambda inner: st.builds(
        PatternNode,
        labels,
        st.sampled_from(Axis),
        st.frozensets(st.sampled_from(Mark)),
        st.lists(st.builds(ValuePredicate, relations, texts | numbers), max_size=1).map(tuple),
        st.lists(inner, max_size=3).map(tuple),
    ),
    max_leaves=6,
)
durations = st.builds(Duration, st.integers(1, 60), st.sampled_from(Unit))
windows = durations | st.builds(ItemCount, st.integers(1, 1000))
stream_refs = st.builds(s.StreamRef, names, st.none() | plain_names)
ranges = st.builds(s.StreamRange, names, names)
groups = st.recursive(
    stream_refs,
    lambda inner: st.builds(
        s.Group,
        st.lists(inner | ranges, min_size=2, max_size=3).map(tuple),
        st.none() | plain_names,
    ),
    max_leaves=5,
)
table_joins = st.builds(
    s.TableJoin, stream_refs, st.lists(names, min_size=1, max_size=2).map(tuple)
)
window_joins = st.builds(s.WindowJoin, windows, groups, plain_names, filters)
conditions = st.lists(st.builds(s.Condition, plain_names, filters), max_size=2).map(tuple)
create_feeds = st.builds(
    s.CreateFeed,
    names,
    groups,
    st.none() | patterns,
    st.one_of(
        st.lists(window_joins, max_size=2).map(tuple), st.lists(table_joins, max_size=2).map(tuple)
    ),
    conditions | st.builds(s.Condition, st.none(), filters).map(lambda one: (one,)),
)
attributes = st.lists(
    st.builds(Attribute, names, st.sampled_from(Type), st.booleans()),
    min_size=1,
    max_size=4,
    unique_by=lambda attribute: attribute.name,
).map(tuple)
formats = st.sampled_from(s.Format)
value_schemas = (
    st.none()
    | st.builds(s.ValueSchema, st.sampled_from(s.ValueFormat), texts, texts)
    | st.builds(
        s.ValueSchema,
        st.sampled_from(s.ValueFormat),
        texts,
        framing=st.none() | st.sampled_from(s.Framing),
    )
)
statements = st.one_of(
    st.builds(
        s.RegisterFeed,
        names,
        texts,
        attributes | st.just(()),
        st.lists(texts.filter(str.strip), max_size=3).map(tuple),
    ),
    st.builds(s.MaterializeFeed, names, names, texts),
    st.builds(s.RegisterStream, names, formats, texts, attributes, value_schemas),
    st.builds(
        s.RegisterTable,
        names,
        formats,
        texts,
        attributes,
        st.none() | names,
        st.none() | durations,
        value_schemas,
    ),
    st.builds(s.RegisterDocuments, names, formats, texts),
    st.builds(
        s.RegisterOperator,
        names,
        st.lists(st.builds(s.Parameter, names, st.sampled_from(Type)), max_size=3).map(tuple),
        texts,
        st.none() | st.floats(0, 1e6),
        st.none() | st.floats(0, 1),
    ),
    st.builds(s.Advertise, names, filters),
    create_feeds,
    st.builds(
        s.Subscribe,
        names,
        st.builds(s.Output, st.sampled_from(s.OutputKind), texts),
        st.none() | texts,
        st.none() | durations,
        st.none() | durations,
        st.none() | names,
    ),
    st.builds(s.Renew, texts, st.none() | durations),
    st.builds(s.Unsubscribe, texts),
    st.builds(s.Drop, st.sampled_from(s.NameKind), names),
    st.builds(s.Show, st.sampled_from(s.Listing)),
    st.builds(s.Explain, names),
)
