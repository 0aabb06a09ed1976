"""What lies under `v1/`, in either layout: pages or chunks, generations, the manifest, and the output folder.

Imports `api` only. Start with `layouts` and `generations`, then `manifest`, `folder` and `staging`.
"""
