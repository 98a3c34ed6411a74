"""Basic authentication (RFC 7617), if the settings contain credentials."""

from base64 import b64encode
from hmac import compare_digest

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send


class Authentication:
    """Pass on only requests with the credentials, ``user:password``."""

    def __init__(self, app: ASGIApp, credentials: str) -> None:
        self._app = app
        self._token = b64encode(credentials.encode())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._are_in(Headers(scope=scope)):
            await self._app(scope, receive, send)
            return
        response = PlainTextResponse(
            "A user and a password are needed\n",
            401,
            {"www-authenticate": 'Basic realm="contacts", charset="UTF-8"'},
        )
        await response(scope, receive, send)

    def _are_in(self, headers: Headers) -> bool:
        """Whether the request has the credentials, compared in constant time."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        return scheme.lower() == "basic" and compare_digest(token.strip().encode("latin-1"), self._token)
