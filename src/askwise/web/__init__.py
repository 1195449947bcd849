"""The server of `askwise serve`: cases over HTTP, kept as events in a database, with an audit trail."""
