"""From the database to `output/`: read, guard, make, move into place.

Imports every package but `publish`, `stores` and `cli`. Start with `preparation`, whose stages dry runs
share, then `run` and `site`.
"""
