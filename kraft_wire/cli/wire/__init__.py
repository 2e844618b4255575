"""`kraft-wire wire`: the codecs from the command line."""
