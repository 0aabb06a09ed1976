"""What goes wrong: every error carries `status`, `path` and `message`, and its text alone says what to do."""


class ClientError(Exception):
    """Anything that a client of a site raises.

    `status` is the HTTP status of the answer, None if there was none or it is not to blame. `path` names the parameter
    at fault, or the place in a body such as `items.3.prob`; it may be empty.
    """

    def __init__(self, message: str, *, url: str = "", status: int | None = None, path: str = "") -> None:
        self.url, self.status, self.path, self.message = url, status, path, message
        super().__init__(message)

    def __str__(self) -> str:
        return ": ".join(filter(None, [self.url, str(self.status or ""), self.path, self.message]))


class NoSiteError(ClientError):
    """At the address that a client was given, there is no site."""

    def __init__(self, address: str, status: int | None = None) -> None:
        missing = "" if address.startswith(("http://", "https://")) else ", with https:// or http://"
        message = f"no Public Markets site answers at {address}; give the address before /v1{missing}"
        super().__init__(message, status=status)

    def __str__(self) -> str:
        return self.message


class OtherHostError(ClientError):
    """The site leads to another host, `host`, which `Options.hosts` does not have."""

    def __init__(self, host: str, *, url: str) -> None:
        self.host = host[:100]
        super().__init__(f"leads to another host; if that is right, allow it: hosts=['{self.host}']", url=url)


class ApiError(ClientError):
    """The site refuses the request, and trying again will not help."""


class ExpiredCursorError(ApiError):
    """The list of a walk was replaced too long ago, or withdrawn: start again from the first page."""


class NotFoundError(ApiError):
    """There is no such market or object."""


class UnavailableError(ClientError):
    """No answer, or one of a site in trouble or over its limit: try again later.

    `retry_after` has the seconds that the site asks to wait, if it does.
    """

    def __init__(self, message: str, *, status: int | None = None, retry_after: float | None = None) -> None:
        self.retry_after = retry_after
        super().__init__(message, status=status)


class AnswerError(ClientError):
    """An answer is not what the API promises."""


class DamagedError(AnswerError):
    """An answer was damaged on its way, as often as it was asked for."""


class StoreError(ClientError):
    """A copy of the markets cannot be read or written."""


class StartAgainError(ClientError):
    """The steps of the feed do not lead from the copy to the site's state; following starts again from the dump."""
