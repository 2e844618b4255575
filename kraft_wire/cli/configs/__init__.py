"""`kraft-wire configs`: describe, change and explain settings of topics, brokers and groups."""
