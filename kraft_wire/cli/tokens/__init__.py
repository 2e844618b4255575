"""`kraft-wire tokens`: delegation tokens of any cluster."""
