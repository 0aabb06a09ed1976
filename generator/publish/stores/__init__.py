"""Where is published: buckets and directories behind one protocol. Start with `store`."""
