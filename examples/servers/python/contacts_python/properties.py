"""The resources of the address book, their properties, and the answers that contain them.

Each has one written form, because all candidates must send the same bytes.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from urllib.parse import quote, unquote_to_bytes

from .vcards import lines, only, unfold
from .xmltree import DAV, NO_CHARACTER, Element, Name, escape

# Maximum size of a request's body, and therefore of a contact, in bytes.
MAXIMUM_BYTES = 1 << 20
# Maximum length of a contact's name, in bytes.
NAME_BYTES = 255

BOOK = "/dav/addressbooks/contacts/"

DECLARATIONS = (
    'xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:carddav" xmlns:S="http://calendarserver.org/ns/"'
)
DECLARATION = '<?xml version="1.0" encoding="utf-8"?>\n'
# The begin and the end of every multistatus answer.
MULTISTATUS_BEGIN = f"{DECLARATION}<D:multistatus {DECLARATIONS}>\n"
MULTISTATUS_END = "</D:multistatus>\n"

# The properties of allprop (RFC 4918, 9.1). A client must name the properties of other documents.
ALL = ("D:resourcetype", "D:displayname", "D:getcontenttype", "D:getcontentlength", "D:getetag")

OWNER = "<D:href>/dav/principal/</D:href>"
READ = "<D:privilege><D:read/></D:privilege><D:privilege><D:read-current-user-privilege-set/></D:privilege>"
WRITE = (
    f"{READ}<D:privilege><D:write-content/></D:privilege>"
    "<D:privilege><D:bind/></D:privilege><D:privilege><D:unbind/></D:privilege>"
)
REPORTS = (
    "<D:supported-report><D:report><C:addressbook-multiget/></D:report></D:supported-report>"
    "<D:supported-report><D:report><C:addressbook-query/></D:report></D:supported-report>"
)


class Kind(Enum):
    """The kind of resource at a path below ``/dav``."""

    ROOT = "/dav/"
    """The start of discovery."""
    PRINCIPAL = "/dav/principal/"
    """The only principal, the owner of the address book."""
    HOME = "/dav/addressbooks/"
    """The principal's collection of address books."""
    BOOK = BOOK
    """The address book."""
    CONTACT = f"{BOOK}*"
    """A contact in the address book, existing or not."""


# The properties of each kind in the order of the answer. Fixed properties have their value here.
PROPERTIES: dict[Kind, dict[str, str]] = {
    Kind.ROOT: {
        "D:resourcetype": "<D:collection/>",
        "D:displayname": "Contacts server",
        "D:current-user-principal": OWNER,
    },
    Kind.PRINCIPAL: {
        "D:resourcetype": "<D:collection/><D:principal/>",
        "D:displayname": "Owner",
        "D:current-user-principal": OWNER,
        "D:principal-URL": OWNER,
        "C:addressbook-home-set": "<D:href>/dav/addressbooks/</D:href>",
    },
    Kind.HOME: {
        "D:resourcetype": "<D:collection/>",
        "D:displayname": "Address books",
        "D:current-user-principal": OWNER,
        "D:owner": OWNER,
        "D:current-user-privilege-set": READ,
    },
    Kind.BOOK: {
        "D:resourcetype": "<D:collection/><C:addressbook/>",
        "D:displayname": "Contacts",
        "D:current-user-principal": OWNER,
        "D:owner": OWNER,
        "D:current-user-privilege-set": WRITE,
        "D:supported-report-set": REPORTS,
        "C:addressbook-description": "The contacts in the database",
        "C:supported-address-data": (
            '<C:address-data-type content-type="text/vcard" version="3.0"/>'
            '<C:address-data-type content-type="text/vcard" version="4.0"/>'
        ),
        "C:supported-collation-set": (
            "<C:supported-collation>i;ascii-casemap</C:supported-collation>"
            "<C:supported-collation>i;unicode-casemap</C:supported-collation>"
        ),
        "C:max-resource-size": str(MAXIMUM_BYTES),
        "S:getctag": "",
    },
    Kind.CONTACT: {
        "D:resourcetype": "",
        "D:getcontenttype": "text/vcard; charset=utf-8",
        "D:getcontentlength": "",
        "D:getetag": "",
        "D:current-user-principal": OWNER,
        "D:owner": OWNER,
        "D:current-user-privilege-set": WRITE,
        "D:supported-report-set": REPORTS,
    },
}

ALLOW = {
    Kind.ROOT: "OPTIONS, PROPFIND",
    Kind.PRINCIPAL: "OPTIONS, PROPFIND",
    Kind.HOME: "OPTIONS, PROPFIND",
    Kind.BOOK: "OPTIONS, PROPFIND, REPORT",
    Kind.CONTACT: "OPTIONS, GET, HEAD, PUT, DELETE, PROPFIND, REPORT",
}

# The collections directly inside a collection.
COLLECTIONS = {Kind.ROOT: (Kind.PRINCIPAL, Kind.HOME), Kind.HOME: (Kind.BOOK,)}


@dataclass(frozen=True)
class Resource:
    """A kind; a contact also has a name."""

    kind: Kind
    name: str = ""

    @property
    def href(self) -> str:
        """The resource's path, percent-encoded; the path of a collection ends with a slash."""
        return contact_href(self.name) if self.kind is Kind.CONTACT else self.kind.value


def resource_at(path: str) -> Resource | None:
    """Return the resource at the path of a request; the last slash of a collection may be missing."""
    collection = path.removesuffix("/") + "/"
    for kind in (Kind.ROOT, Kind.PRINCIPAL, Kind.HOME, Kind.BOOK):
        if kind.value == collection:
            return Resource(kind)
    name = contact_name(path)
    return None if name is None else Resource(Kind.CONTACT, name)


def contact_name(path: str) -> str | None:
    """Return the name of the contact at a path, if it can have one."""
    if not path.startswith(BOOK):
        return None
    encoded = unquote_to_bytes(path.removeprefix(BOOK))
    try:
        name = encoded.decode()
    except UnicodeDecodeError:
        return None
    if not 1 <= len(encoded) <= NAME_BYTES or name in (".", ".."):
        return None
    if NO_CHARACTER.search(name) or any(character in name for character in "/\t\n\r\x7f"):
        return None
    return name


def contact_href(name: str) -> str:
    """Return a contact's path, percent-encoded except the unreserved characters of RFC 3986 and ``@``."""
    return BOOK + quote(name, safe="@")


@dataclass
class Wanted:
    """The properties that a request asks for."""

    names: list[Name]
    """The named properties, each once."""
    all: bool = False
    """The properties of RFC 4918 too."""
    names_only: bool = False
    """Only the names of all properties."""


def wanted_of(root: Element) -> Wanted | None:
    """Read ``allprop`` with ``include``, ``propname`` or ``prop``; ``None`` if the root contains none."""

    def names(element: Element | None) -> list[Name]:
        return list(dict.fromkeys(child.name for child in element.children)) if element else []

    if prop := root.child(DAV, "prop"):
        return Wanted(names(prop))
    if root.child(DAV, "propname"):
        return Wanted([], names_only=True)
    if root.child(DAV, "allprop"):
        return Wanted(names(root.child(DAV, "include")), all=True)
    return None


class Plan:
    """The answer to one ``Wanted`` for all resources of one kind, computed once and written for each."""

    def __init__(self, wanted: Wanted, kind: Kind) -> None:
        own = PROPERTIES[kind]
        asked = {name.qualified() for name in wanted.names}
        if wanted.all:
            asked.update(ALL)
        self._kind = kind
        self._names_only = wanted.names_only
        self._found = [name for name in own if wanted.names_only or name in asked]
        self._missing = "".join(name.empty_element() for name in wanted.names if name.qualified() not in own)

    def has(self, name: str) -> bool:
        """Whether the answer has the value of this property."""
        return not self._names_only and name in self._found

    def response(self, href: str, *, etag: str = "", length: int = 0, data: str = "") -> str:
        """Return the response for a resource.

        ``etag`` is a contact's entity tag without quotes, or the address book's collection tag. ``data`` is
        the element with the vCard; empty if the answer has no vCard.
        """
        own = PROPERTIES[self._kind]
        parts = []
        for name in self._found:
            if self._names_only:
                value = ""
            elif name == "D:getetag":
                value = f"&quot;{etag}&quot;"
            elif name == "D:getcontentlength":
                value = str(length)
            elif name == "S:getctag":
                value = etag
            else:
                value = own[name]
            parts.append(f"<{name}>{value}</{name}>" if value else f"<{name}/>")
        found = "".join(parts) + data
        propstats = ""
        if found or not self._missing:
            propstats = _propstat(found, "200 OK")
        if self._missing:
            propstats += _propstat(self._missing, "404 Not Found")
        return f"<D:response><D:href>{href}</D:href>{propstats}</D:response>\n"


def _propstat(properties: str, status: str) -> str:
    return f"<D:propstat><D:prop>{properties}</D:prop><D:status>HTTP/1.1 {status}</D:status></D:propstat>"


def status_response(href: str, status: str, error: str = "") -> str:
    """Return the response for a resource as a whole; ``error`` is an element with details, or empty."""
    error = error and f"<D:error>{error}</D:error>"
    return (
        f"<D:response><D:href>{escape(href)}</D:href><D:status>HTTP/1.1 {status}</D:status>"
        f"{error}</D:response>\n"
    )


def error_body(condition: str) -> str:
    """Return a body that names the failed precondition."""
    return f"{DECLARATION}<D:error {DECLARATIONS}>{condition}</D:error>\n"


@dataclass
class AddressData:
    """The form of the vCards in a report (RFC 6352, 10.4)."""

    version: str | None
    """The requested version; ``None`` allows any."""
    properties: Iterable[str]
    """The requested properties; empty means all."""

    def element(self, vcard: str) -> str | None:
        """Return the element with the vCard in it; ``None`` if the vCard has another version."""
        if self.version is not None and not any(
            line.name == "VERSION" and line.value == self.version for line in lines(unfold(vcard))
        ):
            return None
        data = only(vcard, self.properties) if self.properties else vcard
        return f"<C:address-data>{escape(data)}</C:address-data>"
