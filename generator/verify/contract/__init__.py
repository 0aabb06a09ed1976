"""Holds any deployment of the read API, ours or a dynamic server's, to its contract. Start with `run`.

    subject ─► content (walks, details, snapshot) ─┐
           └─► requests (table, HEAD, 304, …) ─────┴─► mismatches ─► asked again ─► those that were seen twice

It knows nothing of a dump: whatever is compared is compared with other answers of the same deployment.
"""
