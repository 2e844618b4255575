"""Generated field tables."""

__all__: list[str] = []
