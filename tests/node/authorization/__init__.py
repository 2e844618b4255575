"""Authorization: guards before handlers."""
