"""The side of the CDN: the router rendered for nginx, CloudFront and Cloudflare, and its local twin.

Imports `tree`, `api` and `config`. Start with `render`; what decides about requests is `templates/edge/router.js.j2`.
"""
