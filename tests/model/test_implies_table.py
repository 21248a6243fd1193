"""Implications by hand: pairs that must be found, and pairs that must not."""

from __future__ import annotations

import re

import pytest
from tests.language.definitions import define

from headgate.language.check import check
from headgate.language.parse import parse
from headgate.language.statements import CreateFeed
from headgate.model.filters import Filter, Not
from headgate.model.implies import implies_filter

DEFINITIONS = define("""
register stream S from json 's' (title text, body text, x float, n int, sold bool,
  time timestamp, link link, seal bytes, page xml);
register operator near(place text) from 'm:near';
register operator people(count int) from 'm:people';
register operator pair(left int, right int) from 'm:pair';
""")

# The last of `starts with` in the second table: the title may be a document, which is no text.
IMPLIED = """
x < 5                                   => x <= 5
x < 5                                   => x is present
not x is present                        => not x < 5
not x <= 5                              => not x < 5
x = 1                                   => not x = 2
x = 1                                   => x != 2
x < 3                                   => not x > 5
x = 1.0                                 => n is present or x in (1, 2)
x between 2 and 3                       => x > 1.5
x > 3 and x < 9                         => x between 3 and 9
x >= 5 and x <= 5                       => x = 5
x in (1, 2) and x != 1                  => x = 2
x < 1 and x > 2                         => title = 'anything'
x >= 1                                  => x = 1 or x > 1
x = 1 or x > 1                          => x >= 1
x is present                            => x < 5 or not x < 5
x between 1 and 5                       => x between 1 and 3 or x between 2 and 5
x > 1 and (n = 1 or n = 2)              => n in (1, 2, 3) and x > 0
(x = 1 or x = 2) and (n = 1 or n = 2)   => x = 1 and n = 1 or x = 2 or n = 2
title = 'rock'                          => not title = 'pop'
title = 'Straße'                        => title = 'STRASSE'
title = 'Rock Concert'                  => title contains 'rock'
title = 'Rock Concert'                  => contains phrase 'rock concert'
title = 'rock' and body = 'pop'         => contains 'rock pop'
title = 'rock concert'                  => title similar(0.5) 'rock'
title in ('rock a', 'b rock')           => title contains 'rock'
title = 'rock concert'                  => title starts with 'rock c'
title starts with 'abc'                 => title starts with 'ab'
title starts with 'abc'                 => not title < 'abc'
title starts with 'abc' and title > 'a' => title < 'abd'
title between 'rock' and 'rock!'        => title starts with 'rock'
title starts with 'rock con'            => title contains 'rock'
title starts with 'a rock con'          => title contains phrase 'a rock'
title contains 'a b'                    => title contains 'a'
title contains phrase 'a b c'           => title contains phrase 'b c'
title contains phrase 'a b'             => contains 'b a'
title contains phrase 'a'               => title contains 'a'
title contains 'a'                      => title contains phrase 'a'
title contains 'a' and title contains 'b' => title contains 'a b'
title contains 'a' and body contains 'b'  => contains 'a b'
title contains 'a' and (body contains 'b' or body = 'b c') => contains 'a b'
not contains 'a'                        => not title contains 'a b'
title contains 'a'                      => not title is not present
title similar(0.7) 'a b'                => title similar(0.6) 'b a'
title similar(1) 'a b'                  => title contains 'a b'
title matches 'a'                       => matches 'a'
title matches 'a'                       => title is present
sold = true                             => sold != false
sold                                    => sold is present
sold != true or sold = true             => sold or sold = false
time = '2026-01-01'                     => time > '2025-12-31'
time.year = 2026                        => time.year > 2025
time.year > 2025                        => time.year >= 2026
time.month >= 12                        => time.month = 12
time.year = 2026                        => time is present
time.year != 1                          => time.weekday between 1 and 7
time.weekday in (6, 7)                  => not time.weekday <= 5
time.hour > 23                          => x = 1
seal = bytes '0a'                       => seal < bytes '0aff'
page = 'rock concert'                   => page contains 'rock'
link = 'https://M.mu/a'                 => link = 'HTTPS://m.mu:443/a#top'
link = 'https://m.mu/a/b'               => link extends 'https://m.mu/a'
link = 'https://m.mu/a'                 => not link references 'm.mu/b'
link references 'https://m.mu/a'        => link references 'm.mu/a'
link references 'https://m.mu/a'        => link references 'm.mu'
link references 'https://m.mu/a'        => link extends 'https://m.mu'
link references 'm.mu'                  => references 'm.mu'
link extends 'https://m.mu/a/b'         => link extends 'm.mu/a'
link extends 'https://m.mu/a?q=1'       => link extends 'm.mu/a'
link extends 'a.m.mu'                   => link extends 'm.mu'
link extends 'https://m.mu'             => link references 'm.mu'
shares-link ('a.org', 'b.org')          => shares-link ('b.org', 'c.org', 'a.org')
near('Rome') and x > 2                  => near('Rome')
near('Rome') and x > 2                  => x > 1
people(?p) and ?p > 50 and x > 2        => people(?p) and x > 1
people(?p) and ?p > 50                  => ?p > 50 and people(?p)
not people(?p)                          => not (people(?p) and ?p > 50)
people(?p) and not pair(?p, ?q)         => people(?p) and not pair(?p, ?q)
"""
NOT_IMPLIED = """
x > 4                                   => x >= 5
x is present                            => x < 5
not x < 5                               => x >= 5
not x < 5                               => x is present
not x = 1                               => x != 1
not x is present                        => x < 5
x < 5                                   => n < 5
x > 3 or x < 9                          => x between 3 and 9
x between 1 and 5                       => x between 1 and 3 or x between 4 and 5
not sold                                => sold = false
sold is present                         => sold or sold = false
title contains 'a'                      => title contains 'a b'
contains 'a'                            => title contains 'a'
contains 'a b'                          => title contains 'a' or body contains 'a'
title contains 'a b'                    => title contains phrase 'a b'
title contains phrase 'a' and body contains phrase 'b' => contains phrase 'a b'
title contains 'rocks'                  => title contains 'rock'
title starts with 'rock'                => title contains 'rock'
title starts with 'ab'                  => title starts with 'abc'
title >= 'ab'                           => title starts with 'ab'
title starts with 'ab'                  => title >= 'ab'
title = 'C++'                           => title = 'C'
title contains 'C++'                    => title = 'C'
title = 'rock concert'                  => title similar(0.6) 'rock'
title = 'rock concert'                  => title matches 'rock'
title similar(0.5) 'a b'                => title contains 'a'
title similar(0.6) 'a b'                => similar(0.6) 'a b'
title matches 'ab'                      => title matches 'a'
matches 'a'                             => title matches 'a'
time.year = 2026                        => time.month = 1
time is present                         => time.day <= 30
time.hour >= 12                         => x > 1
title references 'm.mu'                 => not title contains 'a'
title = 'a' and contains 'b'            => x = 1
title = 'rock'                          => similar(1) 'rock'
link references 'm.mu'                  => link references 'https://m.mu'
link references 'm.mu/a'                => link references 'https://m.mu/a'
link references 'https://m.mu'          => link references 'm.mu/a'
link extends 'm.mu'                     => link references 'm.mu'
link extends 'https://m.mu/ab'          => link extends 'https://m.mu/a'
link extends 'https://m.mu/a'           => link extends 'https://m.mu/a/'
link extends 'xm.mu'                    => link extends 'm.mu'
link extends 'm.mu'                     => link extends 'https://m.mu'
link references 'https://m.mu/a'        => link = 'https://m.mu/a'
references 'm.mu'                       => link references 'm.mu'
shares-link ('a.org', 'b.org')          => shares-link ('a.org')
near('Rome')                            => near('Paris')
people(?p) and pair(?p, ?q)             => people(?p) and pair(?p, ?p)
people(?p)                              => people(?p) and ?p > 50
people(?p) and not pair(?p, ?q)         => not pair(?p, ?q)
people(?p) and pair(?q, ?r) and not pair(?p, ?q) => people(?p) and not pair(?p, ?q)
not (people(?p) and ?p > 50)            => not people(?p)
"""


def read(text: str) -> Filter:
    feed = check(parse(f"create feed F from S as $s where $s[{text}];"), DEFINITIONS)
    assert isinstance(feed, CreateFeed)
    return feed.where[0].filter


def pairs(table: str) -> list[tuple[str, str]]:
    rows = [re.split(r"\s+=> ", line) for line in table.strip().split("\n")]
    return [(left, right) for left, right in rows]


@pytest.mark.parametrize(("specific", "general"), pairs(IMPLIED))
def test_implied(specific: str, general: str) -> None:
    assert implies_filter(read(specific), read(general))
    assert implies_filter(Not(read(general)), Not(read(specific)))


@pytest.mark.parametrize(("specific", "general"), pairs(NOT_IMPLIED))
def test_not_implied(specific: str, general: str) -> None:
    assert not implies_filter(read(specific), read(general))
    assert not implies_filter(Not(read(general)), Not(read(specific)))
