"""What words mean: actions, nouns, looks, and one reading of a sentence."""
