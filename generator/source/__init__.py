"""The database: one read-only transaction that sees one instant, on SQLite or PostgreSQL.

Imports `markets` and `config`. Start with `reader`.
"""
