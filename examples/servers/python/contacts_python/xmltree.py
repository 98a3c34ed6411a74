"""XML in and out: the bodies of requests as a small tree, and the escaping of text."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple
from xml.parsers import expat
from xml.sax.saxutils import escape as escape_text

# Namespace of WebDAV (RFC 4918).
DAV = "DAV:"
# Namespace of CardDAV (RFC 6352).
CARDDAV = "urn:ietf:params:xml:ns:carddav"
# Namespace of the collection tag, which calendar and address book clients use.
CALENDARSERVER = "http://calendarserver.org/ns/"

PREFIXES = {DAV: "D", CARDDAV: "C", CALENDARSERVER: "S"}

# Maximum depth of nested elements. No request needs more than six.
DEPTH = 32

# Characters that XML 1.0 cannot contain.
NO_CHARACTER = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


class Name(NamedTuple):
    """The name of an element or of a property."""

    namespace: str
    """The namespace; empty for a name without one."""
    local: str
    """The name without a prefix."""

    def empty_element(self) -> str:
        """Return this name as an empty element; it declares its namespace if the answer's root does not."""
        if self.namespace == "":
            return f"<{self.local}/>"
        if prefix := PREFIXES.get(self.namespace):
            return f"<{prefix}:{self.local}/>"
        return f'<{self.local} xmlns="{escape(self.namespace)}"/>'

    def qualified(self) -> str:
        """Return the name with the server's prefix; empty if the server does not know the namespace."""
        prefix = PREFIXES.get(self.namespace)
        return f"{prefix}:{self.local}" if prefix else ""


@dataclass
class Element:
    """An element in the body of a request."""

    name: Name
    attributes: dict[str, str]
    """The attributes without a namespace."""
    text: str = ""
    """All character data directly in this element."""
    children: list["Element"] = field(default_factory=list)

    def child(self, namespace: str, local: str) -> "Element | None":
        """Return the first child with this name."""
        return next(self.children_named(namespace, local), None)

    def children_named(self, namespace: str, local: str) -> Iterator["Element"]:
        """Return all children with this name."""
        return (child for child in self.children if child.name == (namespace, local))


class XmlError(Exception):
    """The body is not a well-formed document in UTF-8, has a document type, or is nested too deeply."""


def parse(body: bytes) -> Element:
    """Return the root of a document.

    A document type is refused, because entities could then be expanded.
    """
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise XmlError from error
    if NO_CHARACTER.search(text):
        raise XmlError
    builder = _Builder()
    try:
        builder.parser.Parse(body, True)
    except expat.ExpatError as error:
        raise XmlError from error
    return builder.root


class _Builder:
    """The handlers of expat, which expands no external entities."""

    root: Element

    def __init__(self) -> None:
        self._open: list[Element] = []
        self.parser = expat.ParserCreate("utf-8", namespace_separator=" ")
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text

    def _doctype(self, *_: object) -> None:
        raise XmlError

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self._open) == DEPTH:
            raise XmlError
        namespace, _, local = name.rpartition(" ")
        plain = {key: value for key, value in attributes.items() if " " not in key}
        element = Element(Name(namespace, local), plain)
        if self._open:
            self._open[-1].children.append(element)
        else:
            self.root = element
        self._open.append(element)

    def _end(self, _name: str) -> None:
        self._open.pop()

    def _text(self, text: str) -> None:
        self._open[-1].text += text


def escape(text: str) -> str:
    """Return text escaped for use between tags and between quotes.

    A carriage return is escaped, because a parser would turn it into a line feed.
    """
    return escape_text(text, {'"': "&quot;", "\r": "&#13;"})
