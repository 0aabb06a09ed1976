"""The demo database: generated markets, hidden and private rows included.

Imports `api` only. Start with `database`.
"""
