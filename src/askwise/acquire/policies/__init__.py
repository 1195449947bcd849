"""Policies: which feature to acquire next."""
