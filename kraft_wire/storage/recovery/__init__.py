"""Opening a log after any stop: verification, damage, and its repair."""
