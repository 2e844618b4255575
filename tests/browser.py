"""What a page shows in headless Chromium, as a script of the test's own reports it."""

from __future__ import annotations

import json
import re
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

__all__ = ["reported"]

_SECONDS_MAX = 120


def reported(page: str, probe: str, directory: Path) -> dict[str, Any]:
    """Open the page with `probe` at its end; what that wrote as JSON into `pre#report`."""
    file = directory / "page.html"
    file.write_text(page.replace("</body>", probe + "</body>"), encoding="utf-8")
    command = [
        *("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1500,900"),
        *("--virtual-time-budget=8000", f"--user-data-dir={directory / 'profile'}", "--dump-dom"),
        file.as_uri(),
    ]
    shown = subprocess.run(
        command, capture_output=True, text=True, timeout=_SECONDS_MAX, check=True
    )
    found = re.search(r'<pre id="report">(.*?)</pre>', shown.stdout, re.S)
    assert found is not None, shown.stdout[-2000:]
    content: dict[str, Any] = json.loads(unescape(found.group(1)))
    return content
