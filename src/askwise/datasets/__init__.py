"""Tables to learn and measure on: real ones by name, and made ones that know the truth about themselves."""

from askwise.datasets.catalog import load, names
from askwise.datasets.dataset import Dataset
from askwise.datasets.gaussian import make_gaussian
from askwise.datasets.switch import make_switch
from askwise.datasets.synthetic import SyntheticDataset

__all__ = ["Dataset", "SyntheticDataset", "load", "make_gaussian", "make_switch", "names"]
