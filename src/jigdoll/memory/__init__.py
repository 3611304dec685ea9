"""Real motion that is found by words."""
