"""Error answers of the address book, the same bytes in every candidate."""

from collections.abc import Mapping

from starlette.responses import PlainTextResponse, Response

from .properties import error_body

XML = "application/xml; charset=utf-8"


class FaultError(Exception):
    """A refused request; the body is a sentence."""

    def __init__(self, status: int, text: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.headers = headers

    def response(self) -> Response:
        """Return the answer."""
        return PlainTextResponse(self.text, self.status, self.headers)


class ConditionError(FaultError):
    """A refused request; the body is an element that names a precondition of an RFC."""

    def response(self) -> Response:
        """Return the answer."""
        return Response(error_body(self.text), self.status, {"content-type": XML})
