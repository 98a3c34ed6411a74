"""Answers that several paths share."""

import logging
import re

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from .database import Contact, DatabaseError

log = logging.getLogger(__name__)

# A tag in If-None-Match. Outside the quotes there are only commas and W/.
QUOTED = re.compile(r'"([^"]*)"')

NO_CONTACT = "There is no such contact\n"
NO_DATABASE = "The database does not answer\n"
NO_PATH = "There is nothing at this path\n"


def contact_response(request: Request, contact: Contact) -> Response:
    """Return the answer to GET or HEAD of a contact: the contact, or 304 if the client has it already."""
    headers = {"etag": f'"{contact.etag}"'}
    if is_known(request.headers.getlist("if-none-match"), contact.etag):
        if request.method == "HEAD":
            # The length that GET would send (RFC 9110, 8.6), as in the Rust server.
            headers["content-length"] = str(len(contact.vcard.encode()))
        return Response(status_code=304, headers=headers)
    return Response(contact.vcard, headers=headers, media_type="text/vcard")


def is_known(if_none_match: list[str], etag: str) -> bool:
    """Whether ``If-None-Match`` names this entity tag (without quotes), compared weakly."""
    return any(value.strip() == "*" or etag in QUOTED.findall(value) for value in if_none_match)


def no_database(error: DatabaseError) -> Response:
    """Return the answer for a failed database, and log the cause."""
    log.error("%s", error)
    return PlainTextResponse(NO_DATABASE, 503)
