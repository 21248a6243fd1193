"""The tables of characters are those that Unicode's data give, and clusters those of UAX #29."""

from __future__ import annotations

import os
from unicodedata import unidata_version

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icu4py.breakers import CharacterBreaker
from tests.match.agree import assert_agrees, item
from tests.match.derive_characters import OLDEST_UNICODE, derive
from tests.model.scripts import any_script

from headgate.match.characters import KIND, PATH, VERSION, CharacterArrays, character_arrays
from headgate.match.dataclass_codec import write_stored_as
from headgate.match.texts import TextColumn, texts_of
from headgate.match.vocabulary import build_vocabulary
from headgate.model.atoms import Atom, Contains, Similar
from headgate.model.text import fold, words
from headgate.model.values import Type

TYPES = {"t": Type.TEXT, "u": Type.TEXT}


def read(text: str) -> list[str]:
    """The words of a text, as the kernels find them."""
    column = TextColumn(texts_of([text]), np.ones(1, bool), Type.TEXT)
    tokens = build_vocabulary(["x"]).read([column], with_places=True)
    places = tokens.places[: 2 * tokens.start[-1]].reshape(-1, 2).tolist()
    return [
        tokens.texts.data[begin:end].tobytes().decode("utf-8", "surrogatepass")
        for begin, end in places
    ]


@pytest.mark.skipif(
    unidata_version != OLDEST_UNICODE, reason="the tables are derived by the oldest Python"
)
def test_the_tables_are_derived_from_unicode_data() -> None:
    derived = derive()
    derived.check()
    if os.environ.get("REWRITE") == "1":
        PATH.unlink(missing_ok=True)
        write_stored_as(PATH, derived, kind=KIND, version=VERSION)
        character_arrays.cache_clear()
    for name, stored in zip(CharacterArrays._fields, character_arrays(), strict=True):
        assert np.array_equal(stored, getattr(derived, name)), f"{name}: run with REWRITE=1"


clustered = st.text(
    st.sampled_from("กำลังโมู่้ກຳໂຊ້ក្រុមខ្មែរ៉ာကြ္မန်ဘဿေᨠ᩠ᨠᩣ𑜀𑜫東京かがカー々\u3099\u0301\u094d\u0ccb"),
    min_size=1,
    max_size=8,
)


@given(clustered)
def test_scripts_without_spaces_are_cut_into_grapheme_clusters(text: str) -> None:
    assert read("東" + text) == list(CharacterBreaker(fold("東" + text), "en"))


texts = any_script | st.lists(any_script, max_size=4).map(" ".join)
constants = texts.filter(words)
atoms = st.builds(Contains, st.sampled_from(["t", None]), constants, st.booleans()) | st.builds(
    Similar, st.sampled_from(["t", None]), constants, st.sampled_from([0.2, 0.5, 1.0])
)


@given(st.lists(atoms, min_size=1, max_size=6), texts, texts, st.data())
@settings(max_examples=50)
def test_atoms_in_any_script_agree_with_the_oracle(
    given_atoms: list[Contains | Similar], text: str, other: str, data: st.DataObject
) -> None:
    """Half of the items are made of the constants, so that many atoms are true."""
    some = [part for each in given_atoms for part in _parts(each)]
    pieces = st.lists(st.sampled_from([str(each.text) for each in given_atoms]), max_size=3)
    joined = data.draw(st.sampled_from(["", " ", "x", "京"])).join(data.draw(pieces))
    assert_agrees(
        list(dict.fromkeys(some)),
        [item(t=text, u=other), item(t=joined + other), item(u=joined), item(t=other + joined)],
        TYPES,
    )


def _parts(atom: Contains | Similar) -> list[Atom]:
    return [*atom.parts()] if isinstance(atom, Contains) else [atom]
