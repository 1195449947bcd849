"""Rule-based models: trees, forests, rule lists and fuzzy models answer on subsets by their structure."""
