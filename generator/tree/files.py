"""Names of what lies in the output folder beside `v1/`, and is never published. Pure."""

from typing import Final

MANIFEST: Final = "manifest.json"
REPORT: Final = "report.json"
#: The inspection page, and the API's documentation.
INSPECTION: Final = "index.html"
DOCUMENTATION: Final = "api.html"
#: Somebody else's program, as its project published it; templates/vendor/rapidoc tells its version and licence.
VENDOR: Final = "vendor/rapidoc"
RENDERER: Final = f"{VENDOR}/rapidoc-min.js"
#: Every page for people, and what these need.
PAGES: Final = (
    INSPECTION, DOCUMENTATION, RENDERER, f"{VENDOR}/rapidoc-min.js.LICENSE.txt", f"{VENDOR}/LICENSE.txt"
)  # fmt: skip
