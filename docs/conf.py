"""Sphinx: build with `make docs`, warnings are errors."""

import sys
from pathlib import Path

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent))

import making

project = "burler"
author = "The burler authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "reference/tables"]  # tables are included in other pages
html_theme = "furo"
html_title = "burler"
myst_heading_anchors = 3
smartquotes = False  # --options and quotes are typed as they stand
autodoc_typehints = "signature"
autodoc_member_order = "bysource"


def setup(app: Sphinx) -> None:
    """Pages that are made from the code come into being before sphinx looks for pages."""
    app.connect("builder-inited", lambda app: making.write(Path(app.srcdir) / "reference"))
