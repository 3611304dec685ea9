"""A memory of real motion that is found by words: segments in limb space, for every kind of body."""
