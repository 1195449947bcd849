"""Stopping rules: when to stop acquiring, and what a rule promises."""
