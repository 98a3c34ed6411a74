"""The parts of vCard (RFC 6350, RFC 2426) that an address book needs: lines, UID, VERSION, search."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

# Maximum length of a UID in bytes. The UID is a key of the table.
UID_BYTES = 255

# Control characters except TAB and line ends, and characters that XML cannot contain.
FORBIDDEN = re.compile("[\0-\x08\x0b-\x1f\x7f\ufffe\uffff]")
NAME = re.compile("[0-9A-Za-z-]+")
# [group.]name[;parameters]:value. A colon inside quotes belongs to a parameter.
LINE = re.compile(r'(?P<head>[^":]*(?:"[^"]*"[^":]*)*):(?P<value>.*)', re.DOTALL)
ESCAPED = re.compile(r"\\(.)", re.DOTALL)


class InvalidVcardError(Exception):
    """The body is not one valid vCard with one UID and a full name."""


class VcardVersionError(Exception):
    """The body is a vCard of a version other than 3.0 and 4.0."""


class Line(NamedTuple):
    """One line of a vCard, unfolded."""

    name: str
    """The property's name in upper case, without group and parameters."""
    head: str
    """Everything before the colon."""
    value: str
    """Everything after the colon, still escaped."""


def unfold(vcard: str) -> str:
    """Join folded lines, and end each line with a line feed only."""
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
    """Return the vCard in a request's body, and its UID without the prefix ``urn:uuid:``."""
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
    """Return the text of a value without its escapes (RFC 6350, 3.4)."""
    return ESCAPED.sub(lambda match: "\n" if match[1] in "nN" else match[1], value)


def _upper(text: str) -> str:
    """Return the text with ASCII letters in upper case."""
    return text if text.isupper() and text.isascii() else text.translate(_ASCII_UPPER)


_ASCII_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}


def _unicode_casemap(text: str) -> str:
    """Return the casemap of RFC 5051, with upper case instead of title case.

    The two differ in four digraphs and in Georgian.
    """
    if text.isascii():
        return text.upper()
    # The simple mappings of Unicode map one character to one character.
    mapped = (upper if len(upper := character.upper()) == 1 else character for character in text)
    return unicodedata.normalize("NFKD", "".join(mapped))


# The collations (RFC 6352, 8.3). Each maps a text to the text that the matches compare.
COLLATIONS: dict[str, Callable[[str], str]] = {
    "default": _unicode_casemap,
    "i;ascii-casemap": _upper,
    "i;unicode-casemap": _unicode_casemap,
}


def only(vcard: str, properties: Iterable[str]) -> str:
    """Return a vCard, unfolded, with BEGIN, END and the named properties only, in their order."""
    names = {"BEGIN", "END", *map(_upper, properties)}
    return "".join(f"{line.head}:{line.value}\r\n" for line in lines(unfold(vcard)) if line.name in names)


def values_of(name: str) -> Callable[[str], Iterator[str]]:
    """Return a function that finds the values of a property, as texts, in an unfolded vCard.

    It uses one expression for the whole vCard, because splitting each line would take twenty times as long.
    """
    if not NAME.fullmatch(name):
        return lambda _unfolded: iter(())
    property_ = re.compile(
        rf'^(?:[0-9a-z-]+\.)?{name}(?:;[^":\n]*(?:"[^"\n]*"[^":\n]*)*)?:(.*)$',
        re.MULTILINE | re.IGNORECASE | re.ASCII,
    )
    return lambda unfolded: (unescape(match[1]) for match in property_.finditer(unfolded))
