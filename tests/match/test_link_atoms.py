"""Links are found by their forms as model/text.py finds them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.match.agree import answers, assert_agrees, item

from headgate.match.link_forms import forms_of_link, prefixes_of_atom
from headgate.model.atoms import LinkAtom, LinkRelation
from headgate.model.text import extends, references
from headgate.model.values import Link, Type, Xml

TYPES = {"l": Type.LINK, "t": Type.TEXT, "x": Type.XML}
schemes = st.sampled_from(["", "", "http://", "https://", "HTTP://", "://", "x:"])
hosts = st.sampled_from(
    ["a", "b.a", "a.b.a", "ba", "a.", "", "a:80", "a:81", "u@a", ".", "[x", "é"]
)
paths = st.sampled_from(["", "/", "/p", "/p/", "/p//", "/p/q", "/pq", "/p?q", "/p/?q", "?q", "//"])
marks = st.sampled_from(["", "", "#f", "\0", " "])
urls = st.builds(lambda *parts: "".join(parts), schemes, hosts, paths, marks)
targets = urls.filter(str.strip)
names = st.sampled_from(["l", "t", "x", None])
single = st.sampled_from([LinkRelation.REFERENCES, LinkRelation.EXTENDS])
atoms = st.one_of(
    st.builds(LinkAtom, names, single, st.tuples(targets)),
    st.builds(
        LinkAtom,
        names,
        st.just(LinkRelation.SHARES_LINK),
        st.lists(targets, min_size=1, max_size=3).map(tuple),
    ),
)
sentences = st.lists(urls | st.sampled_from(["see", "://", "(", ")."]), max_size=4).map(" ".join)
items = st.builds(
    lambda link, text, document: item(l=Link(link), t=text, x=Xml(document)),
    urls,
    sentences,
    sentences.map(lambda text: f"<a href='{text}'>{text}</a>"),
)


@given(urls, targets)
def test_forms_begin_with_the_prefixes_of_the_atoms_that_they_satisfy(
    link: str, target: str
) -> None:
    for relation, rule in ((LinkRelation.REFERENCES, references), (LinkRelation.EXTENDS, extends)):
        prefixes = tuple(prefixes_of_atom(LinkAtom(None, relation, (target,))))
        found = any(form.startswith(prefixes) for form in forms_of_link(link))
        assert found == rule(link, target)


@given(st.lists(atoms, min_size=1, max_size=12, unique=True), st.lists(items, max_size=6))
def test_the_index_agrees_with_the_oracle(given_atoms: list[LinkAtom], given_items: list) -> None:
    assert_agrees(given_atoms, given_items, TYPES)


def test_links_are_found_in_attributes_texts_and_documents() -> None:
    atom = LinkAtom(None, LinkRelation.EXTENDS, ("muse.mu",))
    found = [
        item(l=Link("https://shop.muse.mu/")),
        item(t="see HTTP://muse.mu/news, now"),
        item(x=Xml("<a href='ftp://muse.mu/x'>here</a>")),
        item(t="muse.mu"),
        item(l=Link("https://notmuse.mu")),
        item(),
    ]
    assert answers([atom], found, TYPES) == [[True, True, True, False, False, False]]


def test_a_path_of_ten_thousand_slashes_is_one_search() -> None:
    atom = LinkAtom("l", LinkRelation.EXTENDS, ("https://a.org/b//",))
    deep = Link("https://a.org/b" + "/" * 100_000)
    assert answers([atom], [item(l=deep), item(l=Link("https://a.org/b/c"))], TYPES) == [
        [True, True]
    ]
