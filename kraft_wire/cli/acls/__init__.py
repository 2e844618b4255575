"""`kraft-wire acls`: list, add and remove access-control entries of any cluster."""
