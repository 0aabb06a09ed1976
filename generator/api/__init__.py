"""The API contract: fields, limits, keys, cursors, slugs, and the OpenAPI document. Pure.

Imports `config` only. Start with `contract`, then `keys`; the prose of OpenAPI is in `openapi.yaml`.
"""
