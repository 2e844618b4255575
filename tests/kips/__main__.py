"""`python -m tests.kips`: count requirements and tests, fail where one has none.

`--write` writes docs/KIPS.md.
"""

import sys

from tests.kips.traceability import PAGE, counted, page

if sys.argv[1:] == ["--write"]:
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
else:
    lines, is_whole = counted()
    print("\n".join(lines))
    sys.exit(not is_whole)
