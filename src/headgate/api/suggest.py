"""What is there already for a feed that somebody writes: equal and wider feeds, shared conditions.

    statement ──► plan ──► feeds over the same sources ──► ranked by common words ──► the first ones
                                                                                     parsed, related
                                                                                     (plan/relate.py)

Of 100,000 feeds over a source only texts are compared with each other; at most CANDIDATES_MAX, and
as many as BUDGET_S allows, are planned. The answer says how many were looked at. What is said of a
feed is a proof, for all items; what is not said may be so all the same.

A condition that other feeds have is evaluated once for all of them. So a feed *adds* what its own
conditions cost, and its fair *share* of a condition is an equal part among all that have it. Which
feeds have a condition is read from the canonical texts of statements. Only feeds that the caller
may see count: otherwise one could ask whether somebody else looks for a word.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headgate.api.check_script import prices_of
from headgate.api.planned_feed import PlannedFeed
from headgate.catalog.dependents import Candidate
from headgate.catalog.tenant_catalog import TenantCatalog
from headgate.language.unparse import unparse, unparse_filter, write_definition
from headgate.model.errors import HeadgateError
from headgate.model.filters import TRUE
from headgate.plan.algebra import Filter, Plan, Source, bottom_up
from headgate.plan.leaves import calls_operators
from headgate.plan.normalize import normalize
from headgate.plan.price import Price
from headgate.plan.relate import PlanBranches, PlanRelation, relate, remaining_filter
from headgate.plan.translate import compose

CANDIDATES_MAX = 300
SUGGESTIONS_MAX = 20
BUDGET_S = 1.0
_WORD = re.compile(r"\w+")
_ORDER = (PlanRelation.EQUAL, PlanRelation.WIDER, PlanRelation.NARROWER)


@dataclass(frozen=True, slots=True)
class SuggestedFeed:
    """A feed that is there already."""

    name: str
    relation: PlanRelation
    """What it has, compared with the new one."""
    definition: str
    statement: str = ""
    """The new feed as one over this wider one; empty where that is not so simple."""


@dataclass(frozen=True, slots=True)
class SharedPart:
    """A condition or join of a feed, and who else has it."""

    text: str
    cpu_us: float
    shared_by: int
    """Other feeds that have it too."""
    cheaper: str = ""

    @property
    def share_us(self) -> float:
        return self.cpu_us / (1 + self.shared_by)


@dataclass(frozen=True, slots=True)
class Suggestions:
    feeds: Sequence[SuggestedFeed]
    looked_at: int
    candidates: int
    """Feeds over the same sources."""
    price: Price
    parts: Sequence[SharedPart]

    @property
    def added_us(self) -> float:
        """The CPU time that the feed adds to an item."""
        return sum(part.cpu_us for part in self.parts if not part.shared_by)

    @property
    def share_us(self) -> float:
        """Its fair share of the CPU time of an item."""
        return sum(part.share_us for part in self.parts)

    def text(self) -> str:
        lines = [f"{each.relation}: {each.name}" for each in self.feeds]
        for each in self.feeds:
            if each.relation is PlanRelation.WIDER and each.statement:
                lines += ["", f"over {each.name}:", *(f"  {x}" for x in each.statement.split("\n"))]
                break
        if not self.feeds:
            lines.append("no feed is known to have the same items, or more, or fewer")
        lines.append("")
        for part in self.parts:
            if part.shared_by:
                lines.append(f"shared with {part.shared_by:,}: {part.text}")
            if part.cheaper:
                lines.append(f"cheaper than {part.text}: {part.cheaper}")
        if self.looked_at < self.candidates:
            lines.append(f"compared with {self.looked_at:,} of {self.candidates:,} feeds")
        return "\n".join(lines).strip()


def suggest(
    catalog: TenantCatalog,
    feed: PlannedFeed,
    *,
    but: str = "",
    relate_max: int = CANDIDATES_MAX,
) -> Suggestions:
    """What there is for this feed. `but` is left out: the feed itself, if it is registered."""
    sources = {str(each.name) for each in bottom_up([feed.plan]) if isinstance(each, Source)}
    candidates = [each for each in catalog.feeds_over(sources) if each.name != but]
    ranked = _ranked(feed.plan, candidates)[:relate_max] if relate_max else []
    found, looked_at = _related(catalog, feed, ranked)
    # Before the next look: a catalog in memory has one connection.
    known = {name: catalog.statistics(name) for name in sources}
    with catalog.looking_up() as definitions:
        price = prices_of({"": feed.plan}, definitions, known.get)[""]
    parts = [
        SharedPart(each.text, each.cpu_us, users_of(each.text, candidates), each.cheaper)
        for each in price.parts
    ]
    return Suggestions(found, looked_at, len(candidates), price, parts)


def users_of(condition: str, feeds: Iterable[Candidate]) -> int:
    """How many of the feeds have a condition in their text, and not as a part of a longer one."""
    whole = re.compile(rf"(?<![\w.']){re.escape(condition)}(?![\w.'])")
    return sum(condition in feed.text and bool(whole.search(feed.text)) for feed in feeds)


def _related(
    catalog: TenantCatalog, feed: PlannedFeed, ranked: Sequence[Candidate]
) -> tuple[list[SuggestedFeed], int]:
    """The feeds among these whose relation is known, the closest first; how many were planned."""
    branches, until = PlanBranches.of(feed.plan), time.monotonic() + BUDGET_S
    found: list[SuggestedFeed] = []
    looked_at = 0
    with catalog.looking_up() as definitions:
        for candidate in ranked:
            if time.monotonic() > until or len(found) >= SUGGESTIONS_MAX:
                break
            looked_at += 1
            try:
                other = PlanBranches.of(normalize(compose(candidate.name, definitions)))
            except HeadgateError:  # a feed that cannot be planned is no help
                continue
            relation = relate(other, branches)
            if relation is None:
                continue
            over = _over(candidate.name, feed, branches, other, relation)
            text = unparse(definitions[candidate.name])
            found.append(SuggestedFeed(candidate.name, relation, text, over))
    return sorted(found, key=lambda each: _ORDER.index(each.relation)), looked_at


def _over(
    name: str,
    feed: PlannedFeed,
    narrow: PlanBranches,
    wide: PlanBranches,
    relation: PlanRelation,
) -> str:
    """The feed as one over a wider feed on the same single source."""
    is_simple = len(narrow.filters) == len(wide.filters) == 1 and not narrow.others | wide.others
    if relation is not PlanRelation.WIDER or not is_simple:
        return ""
    (filter_,) = narrow.filters.values()
    if calls_operators(filter_):  # its variables must stay together
        return ""
    rest = remaining_filter(filter_, next(iter(wide.filters.values())))
    if rest == TRUE:
        return ""
    own = re.match(r"\s*create\s+feed\s+(`[^`]*`|[\w.]+)", feed.text, re.IGNORECASE)
    new = own[1] if own else "X"
    return f"create feed {new} from {write_definition(name)} where {unparse_filter(rest)};"


# --- which candidates first -----------------------------------------------------------------------


def _ranked(plan: Plan, candidates: Iterable[Candidate]) -> list[Candidate]:
    """Those first whose text has most of our words, or of whose words we have most; a wider feed
    has fewer conditions than ours, a narrower one more."""
    filters = (node.filter for node in bottom_up([plan]) if isinstance(node, Filter))
    words = {word for each in filters for word in _WORD.findall(unparse_filter(each))}

    def rank(candidate: Candidate) -> tuple[float, int, str]:
        others = set(_WORD.findall(candidate.text.partition("\n  where ")[2]))
        common = len(words & others)
        share = max(common / (len(others) or 1), common / (len(words) or 1))
        return -share if others else -0.5, -common, candidate.name

    return sorted(candidates, key=rank)
