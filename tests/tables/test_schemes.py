"""Schemes are found by the names of the paper, in any case; a wrong name gets a hint."""

from __future__ import annotations

import pytest

from headgate.model.errors import HeadgateError
from headgate.tables.schemes import (
    DEFAULT_SCHEME,
    RUN_SCHEMES,
    SCHEMES,
    JoinScheme,
    find_run_scheme,
    find_scheme,
)


@pytest.mark.parametrize("scheme", JoinScheme)
def test_a_scheme_is_found_in_any_case(scheme: JoinScheme) -> None:
    for name in (str(scheme), scheme.lower(), scheme.upper(), f" {scheme} "):
        assert find_scheme(name) is scheme


def test_the_prefix_of_semijoin_schemes_may_be_left_out() -> None:
    names = "sub", "TUP", "clu", "Clu+"
    assert tuple(map(find_scheme, names)) == RUN_SCHEMES


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("clu++", "did you mean 'clu+'?"),
        ("ref-sj-cluu+", "did you mean 'ref-sj-clu+'?"),
        ("relsel", "did you mean 'rel-sel'?"),
        ("x", "expected enum-j, rel-sel, ref-j, ref-j+, enum-sj, ref-sj-sub"),
    ],
)
def test_an_unknown_name_offers_the_nearest(wrong: str, hint: str) -> None:
    with pytest.raises(HeadgateError) as caught:
        find_scheme(wrong)
    assert f"there is no join scheme '{wrong}': {hint}" in str(caught.value)


def test_a_run_takes_schemes_that_describe_by_regions() -> None:
    assert DEFAULT_SCHEME in RUN_SCHEMES
    for scheme in JoinScheme:
        if scheme in RUN_SCHEMES:
            assert find_run_scheme(scheme.lower()) is scheme
            assert not SCHEMES[scheme].is_unicast
        else:
            with pytest.raises(HeadgateError, match="a run cannot use the join scheme"):
                find_run_scheme(scheme)
