"""What to do about an error of the database, as far as its SQLSTATE or its words tell. Pure."""

from typing import Final, NamedTuple

#: What else there is to do where a connection or a server failed, and not a statement.
RUN_AGAIN: Final = "run again"
_ONLY_IPV6: Final = (
    "this host may have an IPv6 address only, to which this machine has no route: use the pooler's address, which has "
    "IPv4"
)
#: The wheels of the driver look for the system's authorities (sslrootcert=system) where no system has them.
_AUTHORITY: Final = (
    "name the file of its authority in source.url: the one that the host offers, or, if the system trusts it, "
    "sslrootcert=/etc/ssl/certs/ca-certificates.crt"
)
_TENANT: Final = (
    "a pooler that serves many projects wants the user as ROLE.PROJECT, and the host that the project's page shows, "
    "and answers so while the project is paused"
)
_POOL_FULL: Final = "the pool has no connection left: let it hold more, or use an address without pooler"
_NO_POOLER: Final = "port 6543 is a pooler's: if this host is none, use port 5432, or the pooler's own host"
_FULL: Final = "the server has no room for another connection: run again, or let it take more"


class _Cause(NamedTuple):
    """What an error is recognised by: a part of its message, in lower case, and its SQLSTATE if that is not empty."""

    words: str
    remedy: str
    state: str = ""


#: Of several that fit, the first counts.
_CAUSES: Final = (
    _Cause(
        "conflict with recovery",
        "a standby ends queries that are in the way of what it replays: read the primary, or raise "
        "max_standby_streaming_delay of the standby",
    ),
    _Cause("user request", RUN_AGAIN, "57014"),
    # In whatever language the server speaks.
    _Cause("", "raise the limit of the role that reads: ALTER ROLE … SET statement_timeout = '10min'", "57014"),
    _Cause("", "raise the limit of the role that reads: ALTER ROLE … SET transaction_timeout = '10min'", "25P04"),
    _Cause("query_wait_timeout", _POOL_FULL),
    _Cause("max clients reached", _POOL_FULL),
    _Cause("max_client_conn", "the pooler has no room for another client: run again, or let it take more"),
    _Cause("remaining connection slots", _FULL),
    _Cause("too many clients", _FULL),
    _Cause("too many connections", _FULL),
    _Cause("tenant or user not found", _TENANT),
    _Cause("tenant/user", _TENANT),
    _Cause("no tenant identifier", _TENANT),
    _Cause("certificate has expired", "renew the server's certificate, or set this machine's clock"),
    _Cause("certificate verify failed", _AUTHORITY),
    _Cause("root certificate file", _AUTHORITY),
    _Cause("network is unreachable", _ONLY_IPV6),
    _Cause("no address associated with hostname", _ONLY_IPV6),
    _Cause("port 6543 failed: connection refused", _NO_POOLER),
    _Cause("port 6543 failed: timeout", _NO_POOLER),
)


def remedy(state: str | None, message: str) -> str | None:
    """What to do about an error with this SQLSTATE, if any, and message; None if it is not known."""
    text = message.lower()
    fitting = (cause.remedy for cause in _CAUSES if cause.words in text and cause.state in {"", state})
    found = next(fitting, None)
    # A host with several addresses fails at each of them, for reasons of their own.
    is_other = found == _ONLY_IPV6 and text.count(" failed: ") > text.count("network is unreachable")
    return None if is_other else found
