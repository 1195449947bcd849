"""Answers of a model on many completions at once, without building the completions."""
