"""Generated codecs; `registry` finds them."""

__all__: list[str] = []
