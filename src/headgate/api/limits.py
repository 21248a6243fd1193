"""What feeds cost and how much there may be: prices, suspended feeds, quotas; and what there is
already, what is behind a definition, what it was before."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from headgate.api.check_script import prices_of
from headgate.api.explain import FeedLimits
from headgate.api.planned_feed import planned_statement
from headgate.api.suggest import Suggestions, suggest
from headgate.catalog.catalog import Catalog
from headgate.catalog.dependents import Dependents
from headgate.catalog.limits import Resource, Suspension
from headgate.catalog.past_definitions import DefinitionVersion
from headgate.model.errors import UnknownName
from headgate.pipeline.feed_budget import read_costs
from headgate.plan.normalize import normalize_all
from headgate.plan.price import Price
from headgate.plan.translate import compose_all
from headgate.store.data_folder import DataFolder


class LimitCalls:
    """The part of `Headgate` that is about limits."""

    catalog: Catalog
    folder: Path

    def price(self, feed: str) -> Price:
        """What a feed will cost: CPU time for each item, memory, items a day (plan/price.py)."""
        definitions = self.catalog.definitions()
        plans = normalize_all(compose_all([feed], definitions))
        return prices_of(plans, definitions, self.catalog.statistics)[feed]

    def suspend(self, feed: str, reason: str = "by request") -> bool:
        """Stop evaluating a feed until it is resumed; whether it was not suspended before. It stays
        registered, and so do its subscriptions."""
        return self.catalog.suspend(feed, reason)

    def resume(self, feed: str) -> bool:
        """Evaluate a feed again, from now on; whether it was suspended."""
        return self.catalog.resume(feed)

    def suspended(self) -> dict[str, Suspension]:
        """The feeds that are suspended, by name, each with the reason and since when."""
        return self.catalog.suspended()

    def set_quotas(self, limits: Mapping[Resource, int | None]) -> None:
        """Limit statements, subscriptions, …; None removes a limit (catalog/limits.py)."""
        self.catalog.set_quotas(limits)

    def quotas(self) -> dict[Resource, int]:
        """The limits that are set."""
        return self.catalog.quotas()

    def usage(self) -> dict[Resource, float]:
        """What is used of the resources that have quotas, as far as it is known without a run."""
        return self.catalog.usage()

    def spent_s(self) -> dict[str, float]:
        """The CPU time that the run has charged feeds for patterns, joins and operators."""
        return dict(read_costs(DataFolder(self.folder).feed_costs))

    def dependents(self, name: str) -> Dependents:
        """What is behind a source or feed: feeds that read it, subscriptions, tenants."""
        if self.catalog.get_definition(name) is None:
            raise UnknownName(f"nothing is named '{name}'")
        return self.catalog.dependents(name)

    def history(self, name: str) -> list[DefinitionVersion]:
        """What a name stands for and has stood for in the last 90 days, the newest first."""
        return self.catalog.versions_of(name)

    def suggest(self, statement: str) -> Suggestions:
        """What is there already for a feed that is not created yet: feeds with the same items, or
        more, or fewer; conditions that others have; what would be cheaper."""
        return suggest(self.catalog, planned_statement(self.catalog, statement))

    def _feed_limits(self) -> FeedLimits:
        """What `explain` says of the cost of feeds."""
        return FeedLimits(self.catalog.statistics, self.suspended(), self.spent_s())
