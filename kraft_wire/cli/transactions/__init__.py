"""`kraft-wire transactions`: list, describe and abort transactions, and find those that hang."""
