"""The HTTP side: all paths, and the answers of ``/contacts/{key}`` and ``/healthz``."""

import re

from starlette.applications import Starlette
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from .answers import NO_CONTACT, NO_PATH, contact_response, no_database
from .authentication import Authentication
from .database import Database, DatabaseError
from .dav import AddressBook

UUID = re.compile(r"([0-9a-fA-F]{8})-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")

MALFORMED_KEY = "The key of a contact is a UUID: /contacts/12345678-9abc-def0-1234-56789abcdef0\n"
NO_METHOD = "Only GET and HEAD are served\n"


class AnyConvertor(PathConvertor):
    """The rest of the path, unchanged: Starlette's own ``path`` loses a line feed at the end."""

    regex = "(?s:.*)"


register_url_convertor("any", AnyConvertor())


def application(database: Database, credentials: str | None) -> Starlette:
    """Return the server's application; with ``credentials``, contacts require them."""

    async def contact(request: Request) -> Response:
        row = row_of(request.path_params["key"], database.rows)
        if row is None:
            return PlainTextResponse(MALFORMED_KEY, 400)
        found = await database.contact(row)
        if found is None:
            return PlainTextResponse(NO_CONTACT, 404)
        return contact_response(request, found)

    async def health(_request: Request) -> Response:
        await database.check()
        return PlainTextResponse("ok\n")

    guard = [Middleware(Authentication, credentials)] if credentials else None
    app = Starlette(
        routes=[
            Route("/contacts/{key:any}", contact, middleware=guard),
            Route("/healthz", health),
            Route("/dav", AddressBook(database), middleware=guard),
            Route("/dav/{path:any}", AddressBook(database), middleware=guard),
            # The start of discovery (RFC 6764), for every method.
            Route("/.well-known/carddav", Response(status_code=301, headers={"location": "/dav/"})),
        ],
        exception_handlers={DatabaseError: _no_database, 404: _not_found, 405: _method_not_allowed},
    )
    app.router.redirect_slashes = False
    return app


def row_of(key: str, rows: int) -> int | None:
    """Return the primary key for a UUID: its first 32 bits modulo ``rows``, plus 1.

    ``None`` if the key is not a UUID of 8-4-4-4-12 hexadecimal digits.
    """
    match = UUID.fullmatch(key)
    return None if match is None else 1 + int(match[1], 16) % rows


async def _no_database(_request: Request, error: DatabaseError) -> Response:
    return no_database(error)


async def _not_found(_request: Request, _error: Exception) -> Response:
    return PlainTextResponse(NO_PATH, 404)


async def _method_not_allowed(_request: Request, _error: Exception) -> Response:
    return PlainTextResponse(NO_METHOD, 405, {"allow": "GET, HEAD"})
