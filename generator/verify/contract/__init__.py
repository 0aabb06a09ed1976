"""Holds any deployment of the read API, ours or a dynamic server's, to its contract. Start with `run`.

    subject ─► content (walks, snapshot, details) ─┐                ┌─► asked again ─► those that were seen twice
           ├─► questions (rows, details) ──────────┤                │
           └─► requests (table, HEAD, 304, …) ─────┴─► mismatches ──┴─► notes, where the contract is silent

It knows nothing of a dump: whatever is compared is compared with other answers of the same deployment.
"""
