"""What publishing costs: prices, and estimates of requests and money.

Imports `tree`, `api` and `config`. Start with `sizes`, then `estimate`; `readers` is about requests.
"""
