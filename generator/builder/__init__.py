"""From the database to `output/`: read, guard, make, move into place.

Imports every package but `publish`, `stores` and `cli`. Start with `run`, which lists the stages, then `site`.
"""
