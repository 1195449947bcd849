"""Run by Alembic: migrate over the connection that `askwise.web.database.migrate` has opened."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
