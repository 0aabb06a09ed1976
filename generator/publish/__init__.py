"""From `output/` to a store: plan, apply, commit; takedown and withdrawal.

Imports `downloads`, `feeds`, `search`, `cost`, `tree`, `api` and `config`, never `builder`.
Start with `run`, then `protocol`.
"""
