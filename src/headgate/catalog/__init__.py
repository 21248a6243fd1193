"""What is registered: sources, feeds, operators, subscriptions, advertisements, snapshots."""

from headgate.catalog.catalog import Catalog
from headgate.catalog.kinds import SOURCE_KINDS, DefinitionKind
from headgate.catalog.outcome import Outcome, statement_number

__all__ = ["SOURCE_KINDS", "Catalog", "DefinitionKind", "Outcome", "statement_number"]
