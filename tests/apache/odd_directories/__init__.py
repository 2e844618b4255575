"""Starts of both makes on directories with damaged, missing or foreign files, compared."""
