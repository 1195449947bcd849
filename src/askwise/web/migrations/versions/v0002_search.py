"""What cases are searched by, in any case of letters; the trail in order; keys of clients as digests."""

import hashlib
import unicodedata

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the column and the indexes, and replace the text of keys."""
    op.add_column("cases", sa.Column("search", sa.Text, nullable=False, server_default=""))
    connection = op.get_bind()
    labels = connection.execute(sa.text("SELECT id, label FROM cases WHERE label <> ''")).all()
    folded = [{"id": case, "search": unicodedata.normalize("NFKC", label.casefold())} for case, label in labels]
    if folded:
        connection.execute(sa.text("UPDATE cases SET search = :search WHERE id = :id"), folded)
    keys = connection.execute(sa.text('SELECT "by", key FROM idempotency_keys')).all()
    hashed = [{"by": by, "old": key, "new": hashlib.sha256(f"{by}\0{key}".encode()).hexdigest()} for by, key in keys]
    if hashed:
        connection.execute(sa.text('UPDATE idempotency_keys SET key = :new WHERE "by" = :by AND key = :old'), hashed)
    op.create_index("ix_cases_search", "cases", ["search", "state", "updated", "id"])
    op.drop_index("ix_events_at", "events")
    op.create_index("ix_events_order", "events", ["at", "case_id", "version"])


def downgrade() -> None:
    """Drop them; the text of keys is gone."""
    op.drop_index("ix_events_order", "events")
    op.create_index("ix_events_at", "events", ["at"])
    op.drop_index("ix_cases_search", "cases")
    op.drop_column("cases", "search")
