"""How checked cases ended, in the order of time."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the index."""
    finished = sa.text("type = 'finish' AND value IS NOT NULL")
    op.create_index(
        "ix_events_checks",
        "events",
        ["at", "case_id", "version"],
        sqlite_where=finished,
        postgresql_where=finished,
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_index("ix_events_checks", "events")
