"""Many requests, one run folder each, carried out apart: read a table of jobs, run them, go on after a kill."""
