"""Acquisition for tables larger than memory: Parquet in parts, on one machine or on a Dask cluster."""

from askwise.scale.stream import acquire_parquet

__all__ = ["acquire_parquet"]
