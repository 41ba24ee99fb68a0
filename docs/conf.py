"""Sphinx: build with `make docs`, warnings are errors."""

project = "burler"
author = "The burler authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "burler"
myst_heading_anchors = 3
smartquotes = False  # --options and quotes are typed as they stand
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
