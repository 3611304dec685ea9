"""Facts of nature."""

GRAVITY = 9.81
"""How fast things fall [m/s^2]."""
