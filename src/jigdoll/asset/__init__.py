"""Load a character by suffix and bring it into our frame: metres, +Y up, facing +Z, feet on y = 0."""
