"""The stores to publish to, buckets and directories, behind one protocol. Start with `store`.

A store knows the keys and headers of objects (`api`) and its settings, and nothing of what publishers write there.
"""
