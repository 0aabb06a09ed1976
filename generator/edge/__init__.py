"""The CDN side: the router rendered for nginx, CloudFront and Cloudflare, and the local server that runs it.

Imports `search`, `tree`, `api` and `config`. Start with `deployment`; the rules of the API are in
`templates/edge/router.js.j2`.
"""
