"""As much of vCard (RFC 6350, RFC 2426) as an address book needs: lines, UID, VERSION, the search in it."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

# Bytes that a UID may have: it is a key of the table.
UID_BYTES = 255

# Controls but TAB and the ends of lines, and what XML cannot hold.
FORBIDDEN = re.compile("[\0-\x08\x0b-\x1f\x7f\ufffe\uffff]")
NAME = re.compile("[0-9A-Za-z-]+")
# [group.]name[;parameters]:value; a colon between quotes belongs to a parameter.
LINE = re.compile(r'(?P<head>[^":]*(?:"[^"]*"[^":]*)*):(?P<value>.*)', re.DOTALL)
ESCAPED = re.compile(r"\\(.)", re.DOTALL)


class InvalidVcardError(Exception):
    """The body is not one valid vCard with one UID and a full name."""


class VcardVersionError(Exception):
    """The body is a vCard of another version than 3.0 and 4.0."""


class Line(NamedTuple):
    """One line of a vCard, unfolded."""

    name: str
    """The property's name in upper case, without group and parameters."""
    head: str
    """All before the colon."""
    value: str
    """All after it, still escaped."""


def unfold(vcard: str) -> str:
    """Join the lines that were folded, and end each with a line feed alone."""
    return vcard.replace("\r\n", "\n").replace("\n ", "").replace("\n\t", "")


def lines(unfolded: str) -> Iterator[Line]:
    """Return the lines of an unfolded vCard that are well-formed."""
    return (line for line in map(_line, unfolded.split("\n")) if line is not None)


def _line(text: str) -> Line | None:
    match = LINE.fullmatch(text)
    if match is None:
        return None
    head = match["head"]
    name = head.partition(";")[0]
    group, dot, rest = name.partition(".")
    if dot:
        if not NAME.fullmatch(group):
            return None
        name = rest
    return Line(_upper(name), head, match["value"]) if NAME.fullmatch(name) else None


def identify(body: bytes) -> tuple[str, str]:
    """Return the vCard in a request's body and its UID, without the prefix that 4.0 gives it."""
    try:
        vcard = body.decode()
    except UnicodeDecodeError as error:
        raise InvalidVcardError from error
    unfolded = unfold(vcard)
    if FORBIDDEN.search(unfolded):
        raise InvalidVcardError
    found = [_line(text) for text in unfolded.rstrip("\n").split("\n")]
    if None in found:
        raise InvalidVcardError

    def values(name: str) -> list[str]:
        return [line.value for line in found if line.name == name]

    def is_card(line: Line, name: str) -> bool:
        return _upper(line.head) == name and _upper(line.value) == "VCARD"

    if not (
        is_card(found[0], "BEGIN")
        and is_card(found[-1], "END")
        and len(values("BEGIN")) == len(values("END")) == len(values("VERSION")) == 1
        and values("FN")
    ):
        raise InvalidVcardError
    if values("VERSION")[0] not in ("3.0", "4.0"):
        raise VcardVersionError
    if len(values("UID")) != 1:
        raise InvalidVcardError
    uid = unescape(values("UID")[0])
    if _upper(uid[:9]) == "URN:UUID:":
        uid = uid[9:]
    if not 1 <= len(uid.encode()) <= UID_BYTES:
        raise InvalidVcardError
    return vcard, uid


def unescape(value: str) -> str:
    """Return the text that a value stands for (RFC 6350, 3.4)."""
    return ESCAPED.sub(lambda match: "\n" if match[1] in "nN" else match[1], value)


def _upper(text: str) -> str:
    """Return upper case of ASCII alone."""
    return text if text.isupper() and text.isascii() else text.translate(_ASCII_UPPER)


_ASCII_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}


def _unicode_casemap(text: str) -> str:
    """RFC 5051, with upper case in the place of title case: they differ in four digraphs and in Georgian."""
    if text.isascii():
        return text.upper()
    # The simple mappings of Unicode are from one character to one.
    mapped = (upper if len(upper := character.upper()) == 1 else character for character in text)
    return unicodedata.normalize("NFKD", "".join(mapped))


# How two texts are compared (RFC 6352, 8.3): equality and containment are asked of what these return.
COLLATIONS: dict[str, Callable[[str], str]] = {
    "default": _unicode_casemap,
    "i;ascii-casemap": _upper,
    "i;unicode-casemap": _unicode_casemap,
}


def only(vcard: str, properties: Iterable[str]) -> str:
    """Return a vCard with only the named properties, in their order, beside BEGIN and END; unfolded."""
    names = {"BEGIN", "END", *map(_upper, properties)}
    return "".join(f"{line.head}:{line.value}\r\n" for line in lines(unfold(vcard)) if line.name in names)


def values_of(name: str) -> Callable[[str], Iterator[str]]:
    """Return what finds the values of a property, as texts, in an unfolded vCard.

    One expression for the whole vCard: to part each of its lines would take twenty times as long.
    """
    if not NAME.fullmatch(name):
        return lambda _unfolded: iter(())
    property_ = re.compile(
        rf'^(?:[0-9a-z-]+\.)?{name}(?:;[^":\n]*(?:"[^"\n]*"[^":\n]*)*)?:(.*)$',
        re.MULTILINE | re.IGNORECASE | re.ASCII,
    )
    return lambda unfolded: (unescape(match[1]) for match in property_.finditer(unfolded))
