"""The stores to publish to, buckets and directories, behind one protocol. Start with `store`."""
