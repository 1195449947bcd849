"""Fitted selectors as folders of data: no pickle, no code.

`save` writes a manifest with checksums, the state of askwise's own objects as JSON, arrays as safetensors, and models
in formats of their own; `load` checks everything before it interprets anything.
"""

from askwise.persistence.classes import register_classes
from askwise.persistence.saving import load, save

__all__ = ["load", "register_classes", "save"]
