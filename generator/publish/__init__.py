"""From `output/` to a store: plan, apply, commit; takedown and withdrawal.

Imports `site`, `stores`, `search`, `cost`, `tree`, `api` and `config`, never `builder`.
Start with `run`, then `protocol`; `withdrawal` shows how a takedown makes the site again.
"""
