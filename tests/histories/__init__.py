"""Histories: what real transactional producers and consumers saw, judged."""
