"""Made-up markets, hidden and private rows included, in a database of their own.

Imports `api` only. Start with `database`.
"""
