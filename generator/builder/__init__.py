"""From the database to `output/`: read, guard, render, move into place.

Imports every package but `publish` and `cli`. Start with `run`, which lists the stages, then `render`.
"""
