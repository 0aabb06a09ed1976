"""From `output/` to a store: plan, apply, commit; takedown and withdrawal.

Imports `tree`, `cost`, `api` and `config`, never `builder`. Start with `run`, then `protocol`.
"""
