"""Key and trust stores."""
