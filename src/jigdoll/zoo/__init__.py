"""The built-in characters, made by code: species, bodies, reference gaits."""
