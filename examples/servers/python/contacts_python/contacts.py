"""The HTTP side: ``/contacts/{key}`` and ``/healthz``."""

import logging
import re

from starlette.applications import Starlette
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from .database import Database, DatabaseError

log = logging.getLogger(__name__)

UUID = re.compile(r"([0-9a-fA-F]{8})-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")
# What is between quotes in If-None-Match is a tag, what is outside of them is commas and W/.
QUOTED = re.compile(r'"([^"]*)"')

MALFORMED_KEY = "The key of a contact is a UUID: /contacts/12345678-9abc-def0-1234-56789abcdef0\n"
NO_CONTACT = "There is no such contact\n"
NO_DATABASE = "The database does not answer\n"
NO_PATH = "There is nothing at this path\n"
NO_METHOD = "Only GET and HEAD are served\n"


class AnyConvertor(PathConvertor):
    """The rest of the path, whatever it is: Starlette's own ``path`` loses a line feed at the end."""

    regex = "(?s:.*)"


register_url_convertor("any", AnyConvertor())


def application(database: Database) -> Starlette:
    """Everything that the server answers."""

    async def contact(request: Request) -> Response:
        row = row_of(request.path_params["key"], database.rows)
        if row is None:
            return PlainTextResponse(MALFORMED_KEY, 400)
        found = await database.contact(row)
        if found is None:
            return PlainTextResponse(NO_CONTACT, 404)
        headers = {"etag": f'"{found.etag}"'}
        if is_known(request.headers.getlist("if-none-match"), found.etag):
            if request.method == "HEAD":
                # The length that GET would send (RFC 9110, 8.6), as the Rust server has to say it.
                headers["content-length"] = str(len(found.vcard.encode()))
            return Response(status_code=304, headers=headers)
        return Response(found.vcard, headers=headers, media_type="text/vcard")

    async def health(_request: Request) -> Response:
        await database.check()
        return PlainTextResponse("ok\n")

    app = Starlette(
        routes=[Route("/contacts/{key:any}", contact), Route("/healthz", health)],
        exception_handlers={DatabaseError: _no_database, 404: _not_found, 405: _method_not_allowed},
    )
    app.router.redirect_slashes = False
    return app


def row_of(key: str, rows: int) -> int | None:
    """The primary key that a UUID stands for: its first 32 bits, spread over ``rows`` rows from 1 on.

    ``None`` if the key is not a UUID of 8-4-4-4-12 hexadecimal digits.
    """
    match = UUID.fullmatch(key)
    return None if match is None else 1 + int(match[1], 16) % rows


def is_known(if_none_match: list[str], etag: str) -> bool:
    """Whether ``If-None-Match`` names this entity tag (without quotes), compared weakly."""
    return any(value.strip() == "*" or etag in QUOTED.findall(value) for value in if_none_match)


async def _no_database(_request: Request, error: Exception) -> Response:
    log.error("%s", error)
    return PlainTextResponse(NO_DATABASE, 503)


async def _not_found(_request: Request, _error: Exception) -> Response:
    return PlainTextResponse(NO_PATH, 404)


async def _method_not_allowed(_request: Request, _error: Exception) -> Response:
    return PlainTextResponse(NO_METHOD, 405, {"allow": "GET, HEAD"})
