"""Words only: what a sentence says, before any body or motion is known."""
