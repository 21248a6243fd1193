"""XML that is accepted depends on nothing outside of it, and is matched in linear time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from tests.cpu_time import within_cpu

from headgate.model.checked_xml import XmlLimits, checked_xml, xml_problem
from headgate.model.errors import InvalidValue
from headgate.model.text import parse_xml
from headgate.model.tree_pattern import Axis, PatternNode, attributes_of, matches_pattern
from headgate.views.document import Document


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ('<!DOCTYPE a [<!ENTITY e "x">]><a b="&e;"><item>flood</item></a>', "declares an entity"),
        ('<!DOCTYPE a [<!ENTITY e "x">]><a><item/></a>', "declares an entity"),
        ('<!DOCTYPE a [<!ENTITY % e "x">]><a/>', "declares an entity"),
        ('<!DOCTYPE a SYSTEM "a.dtd"><a b="&e;"/>', "refers to an entity"),
        ('<!DOCTYPE a SYSTEM "a.dtd"><a>&e;</a>', "refers to an entity"),
        ('<a b="&e;"/>', "no well-formed XML"),
        ("<a>", "no well-formed XML"),
        ("no", "no well-formed XML"),
        ("<a " + " ".join(f"b{n}='1'" for n in range(201)) + "/>", "more than 200 attributes"),
        ("<a>" * 251 + "</a>" * 251, "nested more than 250 deep"),
        ("<a>" + "<b/>" * 300_001 + "</a>", "more than 150,000 elements"),
        (
            "".join(f"<a xmlns:x{n}='u' xmlns:y{n}='u'>" for n in range(101)) + "</a>" * 101,
            "more than 200 namespaces",
        ),
    ],
)
def test_what_is_not_accepted_has_a_reason(document: str, problem: str):
    assert problem in str(xml_problem(document))


@pytest.mark.parametrize(
    "document",
    [
        '<!DOCTYPE a SYSTEM "a.dtd"><a b="&#65;&lt;">&amp;<![CDATA[&e;]]><!-- &e; --></a>',
        "<!DOCTYPE a [<!ELEMENT a ANY>]><a/>",
        "<a " + " ".join(f"b{n}='='" for n in range(200)) + "/>",
        "<a><!-- <b " + "c='1' " * 300 + "> --></a>",
    ],
)
def test_what_is_accepted_can_be_read_again(document: str):
    text = checked_xml(document)
    assert parse_xml(text) is not None
    assert xml_problem(text) is None


tags = st.sampled_from(["<a>", "</a>", "<a b='1' x:c='2'>", "<a xmlns:x='u'/>", "x", "<!--<-->"])


@given(st.lists(tags, max_size=12).map("".join))
def test_the_limits_are_those_of_the_tree(inner: str):
    """The pass over the tags finds what a walk over the tree finds."""
    document = f"<r xmlns:x='u'>{inner}</r>"
    root = parse_xml(document)
    if root is None:
        assert xml_problem(document)
        return
    elements = [each for each in root.iter() if isinstance(each.tag, str)]
    depth = max(sum(1 for _ in each.iterancestors()) + 1 for each in elements)
    for limits, is_kept in (
        (XmlLimits(elements_max=len(elements) + 9), True),
        (XmlLimits(nesting_max=depth), True),
        (XmlLimits(nesting_max=depth - 1), False),
    ):
        try:
            checked_xml(document, limits)
        except InvalidValue:
            assert not is_kept
        else:
            assert is_kept


@given(st.integers(1, 80), st.booleans())
def test_attributes_are_found_as_by_lxml(count: int, prefixed: bool):
    prefix = "x:" if prefixed else ""
    names = " ".join(f"{prefix}b{n}='{n}'" for n in range(count))
    root = etree.fromstring(f"<a xmlns:x='u' {names}/>")
    assert attributes_of(root) == [(f"@{prefix}b{n}", str(n)) for n in range(count)]


@pytest.mark.parametrize("unit", ["b{n}='x' ", "xmlns:x{n}='u{n}' x{n}:b='' "])
def test_many_attributes_take_linear_time(unit: str):
    document = f"<a {''.join(unit.format(n=n) for n in range(20_000))}><item/></a>"
    pattern = PatternNode("*", children=(PatternNode("@id", axis=Axis.CHILD),))
    # Quadratic: 3 s for either, and much more with prefixes.
    assert not within_cpu(1, lambda: matches_pattern(pattern, document))
    assert within_cpu(1, lambda: Document.read(document)) is not None
