"""Row-level security in PostgreSQL: a second wall between tenants (catalog/row_security.py)."""

from alembic import op

from headgate.catalog.row_security import policies

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        for statement in policies():
            op.execute(statement)
