"""Rules of the house: which features may be asked when. See `DynamicFeatureSelector(..., constraints=[...])`."""

from askwise.table.constraints import (
    Rule,
    at_most,
    excludes,
    first,
    mandatory,
    only_if,
    pilot,
    read_rules,
    requires,
)

__all__ = ["Rule", "at_most", "excludes", "first", "mandatory", "only_if", "pilot", "read_rules", "requires"]
