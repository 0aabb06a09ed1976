"""What is public of a market: database rows validated and brought to the wire, and the lists they make. Pure.

Imports `api` and `config`. Start with `catalog`, then `row_validation` for one row and `batch_validation` for many.
"""
