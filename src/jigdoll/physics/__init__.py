"""What gravity, contact and friction allow: rigid bodies of a character, and the nearest motion they can perform."""
