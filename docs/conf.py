"""The settings of the site, which `make docs` builds into build/docs. Its pages load nothing from other sites."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "src"), str(HERE.parent / "research" / "src")]
os.environ.setdefault("OMP_NUM_THREADS", "1")

from sphinx_gallery.scrapers import figure_rst  # noqa: E402

import askwise  # noqa: E402

project = "askwise"
author = copyright = "the askwise developers"
version = release = askwise.__version__

PARTS = ("start", "howto", "understand", "reference", "project")
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "accessible",
    "api_pages",
    "graphs",
    "interfaces",
    "mathml",
    "run_blocks",
]
exclude_patterns = ["_ext", "_templates", "gallery/**/*.ipynb", "gallery/**/*.md5", "**/sg_execution_times.rst"]
templates_path = ["_templates"]
suppress_warnings = ["config.cache"]
default_role = "py:obj"
nitpicky = False

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_block"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autosummary_generate = True
autosummary_imported_members = True
numpydoc_show_class_members = False
python_maximum_signature_line_length = 88

copybutton_exclude = ".linenos, .gp, .go"

smartquotes = False  # commands and TOML are copied from these pages
html_theme = "pydata_sphinx_theme"
html_title = "askwise"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_math_renderer = "mathml"
html_show_sourcelink = False
html_copy_source = False
html_context = {"default_mode": "auto"}
html_sidebars = {"index": [], "start/index": []}
html_theme_options = {
    "logo": {"text": "askwise"},
    "show_prev_next": True,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": {f"{part}/**": ["page-toc"] for part in PARTS},  # pictures have the room
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


def charts(block: Any, variables: Any, settings: Any) -> str:
    """A flowchart at the end of a block, as its picture."""
    from askwise.explain import Flowchart

    chart = variables["example_globals"].get("___")
    if not isinstance(chart, Flowchart) or block[1].rstrip().endswith(")"):
        return ""
    path = Path(next(variables["image_path_iterator"])).with_suffix(".svg")
    path.write_text(chart.to_svg(), encoding="utf-8")
    return figure_rst([str(path)], settings["src_dir"], "The policy as a flowchart")


def tidy(gallery_conf: Any, name: str) -> None:
    """Before each example: the usual look, and no progress bars."""
    import matplotlib as mpl

    from askwise.plotting import STYLE

    mpl.rcParams.update(STYLE)


sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_(?!mnist)",  # that one downloads its images, and is shown without being run
    "reset_modules": ("matplotlib", tidy),
    "within_subsection_order": "FileNameSortKey",
    "show_memory": False,
    "write_computation_times": False,
    "remove_config_comments": True,
    "download_all_examples": False,
    "abort_on_example_error": False,
    "image_scrapers": ("matplotlib", charts),
    "thumbnail_size": (480, 320),
    "matplotlib_animations": False,
    "default_thumb_file": str(HERE / "_static" / "favicon.png"),
    "copyfile_regex": r".*\.rst",
    "show_signature": False,
    "nested_sections": False,
    "backreferences_dir": "gallery/uses",
    "doc_module": ("askwise",),
}


def skip(app: Any, what: str, name: str, obj: Any, skipped: bool, options: Any) -> bool | None:
    """Leave out what scikit-learn adds to every estimator: routing of metadata."""
    return True if name == "get_metadata_routing" or (name.startswith("set_") and name.endswith("_request")) else None


def setup(app: Any) -> None:
    app.connect("autodoc-skip-member", skip)
