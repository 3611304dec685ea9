"""python -m jigdoll."""

from jigdoll.cli import main

main()
