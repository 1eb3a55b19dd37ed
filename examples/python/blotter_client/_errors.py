"""What the server refuses."""

from __future__ import annotations

from typing import Any, Mapping

# Of errors that end a stream: their final line has no status.
_STATUS = {
    "INVALID_SESSION": 401,
    "QUOTA_EXCEEDED": 402,
    "HISTORY_CHANGED": 409,
    "HISTORY_CUT": 502,
    "HISTORY_UNPROVED": 503,
}


class BlotterError(Exception):
    """What the server says is wrong: asking again as it is does not help, or did not in time."""

    def __init__(self, status: int, code: str, message: str, type: str = "") -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status = status
        #: Coarse, such as ``VALIDATION_ERROR``.
        self.code = code
        self.message = message
        #: Fine, such as ``/errors/not_a_wallet``.
        self.type = type

    @classmethod
    def of_line(cls, error: Mapping[str, Any]) -> BlotterError:
        """From the ``error`` of a stream's final line."""
        code = str(error.get("code", ""))
        status = _STATUS.get(code, 503 if error.get("retryable") else 400)
        return cls(status, code, str(error.get("message", "")), str(error.get("type", "")))


class Passing(BlotterError):
    """A failure that may pass."""

    #: Seconds that the server asks to wait.
    wait: float | None = None
