"""One case at a time: its session, and why a feature comes next."""
