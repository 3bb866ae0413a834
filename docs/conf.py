"""How the site is built: ``python -m sphinx -W --keep-going -b html docs docs/_build/html``, in a clone, offline."""

import doctest
import importlib.util
import json
import os
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS / "_ext"))
sys.path.append(str(DOCS.parent))  # `experiments`, which is not installed

from api_pages import repository  # noqa: E402

import ldpopt  # noqa: E402

project = "ldpopt"
author = "The ldpopt contributors"
project_copyright = "the ldpopt contributors"
release = ldpopt.__version__
version = ".".join(release.split(".")[:2])

extensions = [
    "myst_nb",
    "sphinx.ext.mathjax",
    "sphinx.ext.doctest",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_reredirects",
    "crosslinks",
    "made_pages",
    "plain_search",
]
exclude_patterns = ["_build", "_ext", "_templates", "conf.py", "images", "made", "**.ipynb_checkpoints"]
# The address that each moved page had before still leads to it.
redirects = {
    before: f"{os.path.relpath(after, os.path.dirname(before) or '.')}.html"
    for before, after in json.loads((DOCS / "redirects.json").read_text("utf-8")).items()
}
nitpicky = True
# Types in signatures that have no page of their own; every other reference must resolve.
nitpick_ignore_regex = [("py:class", r".*")]
keep_warnings = True
suppress_warnings = ["mystnb.unknown_mime_type"]

myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "fieldlist", "colon_fence", "smartquotes", "substitution"]
myst_substitutions = {"release": release}
myst_heading_anchors = 3
myst_dmath_double_inline = True
# The notebooks are kept executed, and tests run them; `-D nb_execution_mode=force` runs them here, too.
nb_execution_mode = "off"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True

# Examples write their files into a folder that goes when the page is done.
doctest_global_setup = """
import numpy as np
import ldpopt
import os as _os, tempfile as _tempfile
_home, _folder = _os.getcwd(), _tempfile.TemporaryDirectory()
_os.chdir(_folder.name)
"""
doctest_global_cleanup = """
_os.chdir(_home)
_folder.cleanup()
"""
doctest_default_flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS

maximum_signature_line_length = 80
python_use_unqualified_type_names = True
add_module_names = False
toc_object_entries_show_parents = "hide"
modindex_common_prefix = ["ldpopt."]

html_theme = "furo"
html_title = f"ldpopt {release}"
# Where the site will stand, as in SITE_ADDRESS="https://example.org/ldpopt/"; each page then names its own address.
html_baseurl = os.environ.get("SITE_ADDRESS", "")
templates_path = ["_templates"]
# The versions whose sites stand beside this one, as in SITE_VERSIONS="0.2 0.1"; without any, none are listed.
html_context = {"versions": os.environ.get("SITE_VERSIONS", "").split(), "repository": repository()}
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/versions.html",
        "sidebar/scroll-end.html",
    ]
}
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "xcode"
pygments_dark_style = "github-dark"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# Formulas are drawn by a MathJax that the site carries, so that it reads the same without a network.
_MATHJAX = importlib.util.find_spec("sphinx-mathjax-offline")
html_static_path.append(str(Path(_MATHJAX.origin).parent / "static" / "mathjax" / "tex-svg.js"))
mathjax_path = "tex-svg.js"
