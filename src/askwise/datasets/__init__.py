"""Tables and images to learn and measure on: real ones by name, and synthetic ones whose exact answers are known."""

from askwise.datasets.catalog import load, names
from askwise.datasets.cube import make_cube, make_cube_nm
from askwise.datasets.dataset import Dataset
from askwise.datasets.gaussian import make_gaussian
from askwise.datasets.images import ImageDataset, load_images
from askwise.datasets.switch import make_switch
from askwise.datasets.synthetic import SyntheticDataset

__all__ = [
    "Dataset",
    "ImageDataset",
    "SyntheticDataset",
    "load",
    "load_images",
    "make_cube",
    "make_cube_nm",
    "make_gaussian",
    "make_switch",
    "names",
]
