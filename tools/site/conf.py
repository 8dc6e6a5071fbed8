"""Settings of Sphinx, which makes the site of the documentation. CONTRIBUTING.md has the command."""

import subprocess
import sys
import tempfile
from pathlib import Path

from sphinx.util import logging

# The pages of each kind.
NAVIGATION = {
    "Tutorial": "docs/tutorial",
    "How-to guides": """docs/guides/own-data docs/guides/targets docs/guides/get-data docs/guides/choose-an-algorithm docs/guides/tune docs/guides/enhance-labels
        docs/guides/incomplete-labels docs/guides/page docs/guides/explain docs/guides/intervals docs/guides/export docs/guides/export-onnx docs/guides/verify
        docs/guides/experiments docs/guides/own-methods docs/guides/reports docs/guides/reproduce-the-papers docs/python/index
        docs/python/from-scikit-learn docs/python/from-pyldl docs/python/model-hubs deploy/README docs/guides/kubernetes docs/security docs/guides/operate
        docs/guides/monitor SECURITY CONTRIBUTING algorithms/README""",
    "Reference": """docs/reference/commands docs/reference/algorithms docs/reference/measures docs/reference/data-formats
        docs/reference/job-spec docs/reference/experiment-spec docs/reference/reports docs/python/reference
        docs/reference/http docs/reference/json docs/reference/cluster docs/reference/chaos docs/reference/alerts
        metrics/METRICS docs/reference/glossary CHANGELOG""",
    "Explanation": """docs/design/how-it-works docs/results BENCHMARKS docs/design/same-bits docs/design/failures
        docs/design/sizing docs/design/defaults docs/design/results docs/design/papers docs/design/python
        docs/design/wire-and-storage ARCHITECTURE""",
}
# The pages about the code, which are below ARCHITECTURE.
INSIDE = "**/DESIGN **/FORMAT **/FILES **/PROTOCOL **/BACKUP docs/dev/*"

project = "Coppice"
root_doc = "README"
include_patterns = ["**.md", "docs/**.rst"]
exclude_patterns = [".*", "**/testdata", "python/README.md"]
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]

html_title = "Coppice"
html_theme = "furo"
html_extra_path = ["index.html"]
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_search_scorer = str(Path(__file__).with_name("search.js"))
html_copy_source = False
smartquotes = False
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_use_ivar = True
highlight_language = "sh"
suppress_warnings = ["misc.highlighting_failure"]

# Markdown has the anchors and the syntax of the web sites that show repositories.
myst_heading_anchors = 6
myst_disable_syntax = ["myst_block_break", "myst_line_comment", "myst_role", "myst_target"]

# The wheel has the classes of the algorithms, which are generated from Go. Python imports it without unpacking it.
wheels = tempfile.TemporaryDirectory()
subprocess.run(["go", "run", "./tools/wheels", "--out", wheels.name, "--only", "any"], cwd=Path(__file__).parents[2], check=True)
sys.path[:0] = map(str, Path(wheels.name).glob("*.whl"))


def setup(app):
    app.connect("source-read", navigate)
    app.connect("autodoc-skip-member", documented)


def navigate(app, page, source):
    """Add the navigation to the pages that have it."""
    for caption, pages in {"README": NAVIGATION, "ARCHITECTURE": {"Inside": INSIDE}}.get(page, {}).items():
        source[0] += f"\n```{{toctree}}\n:hidden:\n:glob:\n:caption: {caption}\n\n" + "\n".join(pages.split()) + "\n```\n"


def documented(app, kind, name, thing, skip, options):
    """Warn of a public name without a docstring."""
    if not name.startswith("_") and (callable(thing) or isinstance(thing, property)) and not thing.__doc__:
        logging.getLogger(__name__).warning("%s has no docstring", name)
