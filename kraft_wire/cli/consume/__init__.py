"""`kraft-wire consume`: read records from topics, alone or as a member of a group."""
