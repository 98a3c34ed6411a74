"""The address book over CardDAV (RFC 6352): every method below ``/dav``."""

import logging
import re
from collections.abc import AsyncIterator
from enum import Enum
from functools import partial

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from .answers import NO_CONTACT, NO_PATH, contact_response, is_known, no_database
from .database import PAGE_ROWS, Database, DatabaseError, Deleted, Entry, Put
from .faults import XML, ConditionError, FaultError
from .properties import (
    ALLOW,
    COLLECTIONS,
    MAXIMUM_BYTES,
    MULTISTATUS_BEGIN,
    MULTISTATUS_END,
    AddressData,
    Kind,
    Plan,
    Resource,
    Wanted,
    contact_href,
    contact_name,
    resource_at,
    status_response,
    wanted_of,
)
from .reports import Filter, report_of
from .vcards import InvalidVcardError, VcardVersionError, identify
from .xmltree import DAV, XmlError, parse

log = logging.getLogger(__name__)

# W/ before a tag makes it weak.
TAG = re.compile(r'(W/)?"([^"]*)"')
URL = re.compile(r"[^/].*?://[^/]*(.*)", re.DOTALL)


class Depth(Enum):
    """How many levels below its resource a request covers."""

    ZERO = "0"
    ONE = "1"
    INFINITY = "infinity"


class AddressBook:
    """Everything below ``/dav``, as an ASGI application: it gets every method and the undecoded path."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            response = await self._answer(request)
        except DatabaseError as error:
            response = no_database(error)
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        path = request.scope["raw_path"].decode("latin-1")
        resource = resource_at(path)
        if resource is None:
            if request.method == "PUT":
                text = "Contacts are kept in /dav/addressbooks/contacts/, under names of 1 to 255 bytes\n"
                return FaultError(409, text).response()
            return FaultError(404, NO_PATH).response()
        method = METHODS.get(request.method)
        try:
            if method is None or request.method not in ALLOW[resource.kind].split(", "):
                raise FaultError(
                    405, "This resource does not take that method\n", {"allow": ALLOW[resource.kind]}
                )
            response = await method(self._database, resource, request)
        except FaultError as fault:
            response = fault.response()
        except DatabaseError as error:
            response = no_database(error)
        if resource.kind is not Kind.CONTACT and not path.endswith("/"):
            # The path of a collection ends with a slash (RFC 4918, 5.2).
            response.headers["content-location"] = resource.href
        return response


async def _options(_database: Database, resource: Resource, _request: Request) -> Response:
    headers = {"dav": "1, 3, addressbook", "allow": ALLOW[resource.kind]}
    return Response(b"", headers=headers, media_type="text/plain")


async def _get(database: Database, resource: Resource, request: Request) -> Response:
    contact = await database.named(resource.name)
    if contact is None:
        raise FaultError(404, NO_CONTACT)
    if not _is_current(request.headers, contact.etag):
        raise _changed()
    return contact_response(request, contact)


async def _put(database: Database, resource: Resource, request: Request) -> Response:
    body = await _read(request)
    if "content-range" in request.headers:
        raise FaultError(400, "A contact is written as a whole\n")
    if not _is_vcard(request.headers):
        raise ConditionError(415, "<C:supported-address-data/>")
    if body is None:
        raise ConditionError(413, "<C:max-resource-size/>")
    try:
        vcard, uid = identify(body)
    except VcardVersionError as error:
        raise ConditionError(415, "<C:supported-address-data/>") from error
    except InvalidVcardError as error:
        raise ConditionError(403, "<C:valid-address-data/>") from error
    allowed = partial(_may_change, request.headers)
    put, text = await database.put(resource.name, uid, vcard, allowed)
    if put is Put.REFUSED:
        raise _changed()
    if put is Put.CONFLICT:
        href = contact_href(text)
        raise ConditionError(409, f"<C:no-uid-conflict><D:href>{href}</D:href></C:no-uid-conflict>")
    return Response(status_code=201 if put is Put.CREATED else 204, headers={"etag": f'"{text}"'})


async def _delete(database: Database, resource: Resource, request: Request) -> Response:
    deleted = await database.delete(resource.name, partial(_may_change, request.headers))
    if deleted is Deleted.REFUSED:
        raise _changed()
    if deleted is Deleted.MISSING:
        raise FaultError(404, NO_CONTACT)
    return Response(status_code=204)


async def _propfind(database: Database, resource: Resource, request: Request) -> Response:
    body = await _read(request)
    if body is None:
        raise _too_large()
    wanted = _propfind_body(body)
    depth = _depth(request.headers, Depth.INFINITY)
    if resource.kind is Kind.CONTACT:
        entries = await database.entries_named([resource.name], vcards=False)
        if not entries:
            raise FaultError(404, NO_CONTACT)
        response = _entry_response(Plan(wanted, Kind.CONTACT), None, entries[0])
        return _multistatus(MULTISTATUS_BEGIN + response + MULTISTATUS_END)
    if depth is Depth.INFINITY:
        raise ConditionError(403, "<D:propfind-finite-depth/>")
    kinds = [resource.kind]
    if depth is Depth.ONE:
        kinds += COLLECTIONS.get(resource.kind, ())
    begin = MULTISTATUS_BEGIN
    for kind in kinds:
        plan = Plan(wanted, kind)
        tag = await database.collection_tag() if plan.has("S:getctag") else ""
        begin += plan.response(kind.value, etag=tag)
    if depth is Depth.ONE and resource.kind is Kind.BOOK:
        return await _stream(begin, _pages(database, Plan(wanted, Kind.CONTACT), None, None, None))
    return _multistatus(begin + MULTISTATUS_END)


def _propfind_body(body: bytes) -> Wanted:
    if not body:
        return Wanted([], all=True)
    wanted = None
    try:
        root = parse(body)
    except XmlError:
        root = None
    if root is not None and root.name == (DAV, "propfind"):
        wanted = wanted_of(root)
    if wanted is None:
        raise FaultError(400, "The body of a PROPFIND is a propfind of RFC 4918\n")
    return wanted


async def _report(database: Database, resource: Resource, request: Request) -> Response:
    body = await _read(request)
    if body is None:
        raise _too_large()
    try:
        root = parse(body)
    except XmlError as error:
        raise FaultError(400, "The body of a REPORT is XML\n") from error
    report = report_of(root)
    depth = _depth(request.headers, Depth.ZERO)
    plan = Plan(report.wanted, Kind.CONTACT)
    if report.filter is None:
        pieces = _named(database, plan, report.data, _asked(report.hrefs, resource))
    elif resource.kind is Kind.CONTACT:
        pieces = _one(database, plan, report.data, resource.name, report.filter)
    elif depth is Depth.ZERO:
        # Depth 0 is the address book itself, which is not a contact (RFC 6352, 8.6; RFC 3253, 3.6).
        pieces = _nothing()
    else:
        pieces = _pages(database, plan, report.data, report.filter, report.limit)
    return await _stream(MULTISTATUS_BEGIN, pieces)


def _asked(hrefs: list[str], resource: Resource) -> list[tuple[str, str | None]]:
    """Return each path of a multiget once, with the contact's name.

    The name is ``None`` if the path can have no contact, or is not the path of the request's own contact.
    """
    asked = []
    for href in dict.fromkeys(hrefs):
        url = URL.fullmatch(href)
        name = contact_name(url[1] if url else href)
        own = resource.kind is not Kind.CONTACT or name == resource.name
        asked.append((href, name if own else None))
    return asked


async def _pages(
    database: Database, plan: Plan, data: AddressData | None, matching: Filter | None, left: int | None
) -> AsyncIterator[str]:
    """Return the contacts in the order of their keys: all, or those that match, at most ``left`` of them."""
    vcards = data is not None or matching is not None
    after = 0
    while True:
        entries = await database.page(after, vcards=vcards)
        piece = []
        for entry in entries:
            if matching is not None and not matching.matches(entry.vcard):
                continue
            if left == 0:
                # More contacts match than the limit allows (RFC 6352, 8.6.1).
                error = "<D:number-of-matches-within-limits/>"
                piece.append(status_response(Kind.BOOK.value, "507 Insufficient Storage", error))
                entries = []
                break
            if left is not None:
                left -= 1
            piece.append(_entry_response(plan, data, entry))
        if piece:
            yield "".join(piece)
        if len(entries) < PAGE_ROWS:
            return
        after = entries[-1].id


async def _named(
    database: Database, plan: Plan, data: AddressData | None, asked: list[tuple[str, str | None]]
) -> AsyncIterator[str]:
    """Return the contacts at these paths, each with its contact's name or ``None``."""
    for begin in range(0, len(asked), PAGE_ROWS):
        some = asked[begin : begin + PAGE_ROWS]
        names = [name for _href, name in some if name is not None]
        entries = {
            entry.name: entry for entry in await database.entries_named(names, vcards=data is not None)
        }
        yield "".join(
            _entry_response(plan, data, entries[name])
            if name in entries
            else status_response(href, "404 Not Found")
            for href, name in some
        )


async def _one(
    database: Database, plan: Plan, data: AddressData | None, name: str, matching: Filter
) -> AsyncIterator[str]:
    """Return the contact at the request's own path, if it matches."""
    for entry in await database.entries_named([name], vcards=True):
        if matching.matches(entry.vcard):
            yield _entry_response(plan, data, entry)


async def _nothing() -> AsyncIterator[str]:
    for nothing in ():
        yield nothing


def _entry_response(plan: Plan, data: AddressData | None, entry: Entry) -> str:
    href = contact_href(entry.name)
    if data is None:
        return plan.response(href, etag=entry.etag, length=entry.length)
    element = data.element(entry.vcard)
    if element is None:
        error = "<C:supported-address-data-conversion/>"
        return status_response(href, "415 Unsupported Media Type", error)
    return plan.response(href, etag=entry.etag, length=entry.length, data=element)


async def _stream(begin: str, pieces: AsyncIterator[str]) -> Response:
    """Return the answer page by page, because its memory then does not grow with its length.

    The first query runs before the answer begins, so a failure gives 503. If a later query fails, the
    server cuts the connection before the end.
    """
    first = await anext(pieces, "")

    async def body() -> AsyncIterator[str]:
        yield begin + first
        try:
            async for piece in pieces:
                yield piece
        except DatabaseError as error:
            log.error("an answer was cut: %s", error)
            raise
        yield MULTISTATUS_END

    return StreamingResponse(body(), 207, {"content-type": XML})


def _multistatus(text: str) -> Response:
    return Response(text, 207, {"content-type": XML})


async def _read(request: Request) -> bytes | None:
    """Return the body of a request; ``None`` if it is larger than ``MAXIMUM_BYTES``.

    The server reads a larger body to its end too, because a client that is still sending would not see
    the answer.
    """
    body = bytearray()
    length = 0
    async for chunk in request.stream():
        length += len(chunk)
        if length <= MAXIMUM_BYTES:
            body += chunk
        else:
            body.clear()
    return bytes(body) if length <= MAXIMUM_BYTES else None


def _changed() -> FaultError:
    return FaultError(412, "The contact is not in the state that the request expects\n")


def _too_large() -> FaultError:
    return FaultError(413, f"The body of a request has {MAXIMUM_BYTES} bytes at most\n")


def _depth(headers: Headers, default: Depth) -> Depth:
    try:
        return Depth(headers["depth"].lower()) if "depth" in headers else default
    except ValueError as error:
        raise FaultError(400, "Depth is 0, 1 or infinity\n") from error


def _is_vcard(headers: Headers) -> bool:
    """Whether the headers of a PUT declare a vCard in UTF-8, or declare no type."""
    if headers.get("content-encoding", "identity").lower() != "identity":
        return False
    if "content-type" not in headers:
        return True
    kind, *parameters = (part.strip() for part in headers["content-type"].lower().split(";"))
    if kind != "text/vcard":
        return False
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name == "charset" and value.strip('"') != "utf-8":
            return False
    return True


def _may_change(headers: Headers, etag: str | None) -> bool:
    """Whether the conditions of a PUT or DELETE hold for this tag, or for no contact (RFC 9110, 13)."""
    return _is_current(headers, etag) and not (
        etag is not None and is_known(headers.getlist("if-none-match"), etag)
    )


def _is_current(headers: Headers, etag: str | None) -> bool:
    """Whether there is no ``If-Match``, or it names this entity tag, compared strongly."""
    if_match = headers.getlist("if-match")
    if not if_match:
        return True
    if etag is None:
        return False
    return any(value.strip() == "*" or ("", etag) in TAG.findall(value) for value in if_match)


METHODS = {
    "OPTIONS": _options,
    "GET": _get,
    "HEAD": _get,
    "PUT": _put,
    "DELETE": _delete,
    "PROPFIND": _propfind,
    "REPORT": _report,
}
