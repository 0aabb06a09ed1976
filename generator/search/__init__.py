"""The search index of `q`: static objects by which an edge finds the markets that have the words of a query. Pure.

Imports `tree` and `api` only. Start with `generation`, then `words` and `buckets`.
templates/edge/search.js.j2 evaluates queries.
"""
