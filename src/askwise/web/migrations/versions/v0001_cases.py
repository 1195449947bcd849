"""Cases, their events, and idempotency keys."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "cases",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("created", sa.String(27), nullable=False),
        sa.Column("updated", sa.String(27), nullable=False, index=True),
        sa.Column("prediction", sa.Text),
        sa.Column("probability", sa.Float),
        sa.Column("spent", sa.Float),
    )
    op.create_table(
        "events",
        sa.Column("case_id", sa.String(32), sa.ForeignKey("cases.id"), primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True),
        sa.Column("type", sa.String(12), nullable=False),
        sa.Column("feature", sa.Text),
        sa.Column("value", sa.Text),
        sa.Column("confirmed", sa.Boolean, nullable=False),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("at", sa.String(27), nullable=False, index=True),
        sa.Column("suggested", sa.Text),
        sa.Column("cost", sa.Float),
        sa.Column("prediction", sa.Text),
        sa.Column("probability", sa.Float),
        sa.Column("model", sa.String(12), nullable=False),
        sa.Column("askwise", sa.String(40), nullable=False),
    )
    op.create_table(
        "idempotency_keys",
        sa.Column("by", sa.Text, primary_key=True),
        sa.Column("key", sa.String(200), primary_key=True),
        sa.Column("digest", sa.String(64)),
        sa.Column("case_id", sa.String(32), nullable=False, index=True),
        sa.Column("version", sa.Integer, nullable=False),
    )


def downgrade() -> None:
    """Drop the tables."""
    for table in ("idempotency_keys", "events", "cases"):
        op.drop_table(table)
