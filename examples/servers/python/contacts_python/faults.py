"""Answers of the address book other than success, the same bytes in every candidate."""

from collections.abc import Mapping

from starlette.responses import PlainTextResponse, Response

from .properties import error_body

XML = "application/xml; charset=utf-8"


class FaultError(Exception):
    """A request that is refused with a sentence."""

    def __init__(self, status: int, text: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.headers = headers

    def response(self) -> Response:
        """Return the answer."""
        return PlainTextResponse(self.text, self.status, self.headers)


class ConditionError(FaultError):
    """A request that is refused by a precondition of an RFC, an element."""

    def response(self) -> Response:
        """Return the answer."""
        return Response(error_body(self.text), self.status, {"content-type": XML})
