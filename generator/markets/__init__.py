"""The public data of a market: rows validated and converted to the wire format, and the lists they form. Pure.

Imports `search`, `api` and `config`. Start with `catalog`, then `row_validation` for one row and
`batch_validation` for many.
"""
