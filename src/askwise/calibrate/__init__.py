"""Calibration on rows that the model has not seen."""
