"""Rule-based models: trees, forests, rule lists and fuzzy models that predict from subsets by their structure."""
