"""Reports of a run: text for a terminal, JSON, JUnit XML, and one HTML page."""
