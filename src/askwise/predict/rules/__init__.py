"""Rule-based models: trees, forests, rule lists and fuzzy models predict from subsets by their structure."""
