"""`python -m tests.kips [--write]`: print docs/KIPS.md, or write it."""

import sys

from tests.kips.traceability import PAGE, page

if sys.argv[1:] == ["--write"]:
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
else:
    print(page())
