"""The two reports of an address book (RFC 6352, 8.6 and 8.7): their bodies, and the contacts that match."""

from collections.abc import Callable
from dataclasses import dataclass

from .faults import ConditionError, FaultError
from .properties import AddressData, Wanted, wanted_of
from .vcards import COLLATIONS, unfold, values_of
from .xmltree import CARDDAV, DAV, Element, escape

SPACE = " \t\r\n"
ADDRESS_DATA = (CARDDAV, "address-data")


def _not_understood() -> FaultError:
    return FaultError(
        400, "The body of a REPORT is an addressbook-multiget or an addressbook-query of RFC 6352\n"
    )


@dataclass
class Report:
    """A parsed report: a multiget with ``hrefs``, or a query with ``filter``."""

    wanted: Wanted
    """The properties of each contact."""
    data: AddressData | None
    """The form of the vCards; ``None`` if the answer has no vCards."""
    hrefs: list[str]
    """Multiget: the paths or URLs of the contacts."""
    filter: "Filter | None" = None
    """Query: the condition that a contact must match."""
    limit: int | None = None
    """Query: the largest number of contacts in the answer."""


def report_of(root: Element) -> Report:
    """Read the body of a REPORT."""
    wanted = wanted_of(root) or Wanted([])
    data = None
    if (prop := root.child(DAV, "prop")) and (element := prop.child(*ADDRESS_DATA)):
        data = _address_data(element)
        wanted.names.remove(ADDRESS_DATA)
    if root.name == (CARDDAV, "addressbook-multiget"):
        hrefs = [href.text.strip(SPACE) for href in root.children_named(DAV, "href")]
        if not hrefs:
            raise _not_understood()
        return Report(wanted, data, hrefs)
    if root.name == (CARDDAV, "addressbook-query"):
        element = root.child(CARDDAV, "filter")
        if element is None:
            raise _not_understood()
        return Report(wanted, data, [], Filter(element), _limit(root))
    raise ConditionError(403, "<D:supported-report/>")


def _address_data(element: Element) -> AddressData:
    version = element.attributes.get("version")
    content_type = element.attributes.get("content-type", "text/vcard")
    if content_type.lower() != "text/vcard" or version not in (None, "3.0", "4.0"):
        raise ConditionError(403, "<C:supported-address-data/>")
    names = (prop.attributes.get("name") for prop in element.children_named(CARDDAV, "prop"))
    return AddressData(version, [name for name in names if name is not None])


def _limit(root: Element) -> int | None:
    """Return ``limit``, at least 1."""
    limit = root.child(CARDDAV, "limit")
    if limit is None:
        return None
    number = limit.child(CARDDAV, "nresults")
    digits = "" if number is None else number.text.strip(SPACE)
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 9 and int(digits) > 0):
        raise _not_understood()
    return int(digits)


class Filter:
    """The condition of a query on properties (RFC 6352, 10.5); conditions on parameters are refused."""

    def __init__(self, element: Element) -> None:
        self._test = _test(element)
        self._properties = [_PropertyFilter(each) for each in element.children_named(CARDDAV, "prop-filter")]

    def matches(self, vcard: str) -> bool:
        """Whether a contact matches; a filter without conditions matches every contact."""
        if not self._properties:
            return True
        unfolded = unfold(vcard)
        return self._test(each.matches(unfolded) for each in self._properties)


class _PropertyFilter:
    def __init__(self, element: Element) -> None:
        if parameter := element.child(CARDDAV, "param-filter"):
            name = escape(parameter.attributes.get("name", ""))
            raise ConditionError(
                403, f'<C:supported-filter><C:param-filter name="{name}"/></C:supported-filter>'
            )
        if "name" not in element.attributes:
            raise _not_understood()
        self._values = values_of(element.attributes["name"])
        self._test = _test(element)
        self._absent = element.child(CARDDAV, "is-not-defined") is not None
        self._matches = [_TextMatch(each) for each in element.children_named(CARDDAV, "text-match")]

    def matches(self, unfolded: str) -> bool:
        found = self._values(unfolded)
        if self._absent:
            return next(found, None) is None
        if not self._matches:
            return next(found, None) is not None
        return any(self._test(each.matches(value) for each in self._matches) for value in found)


# The comparison for each match-type.
MATCH_TYPES: dict[str, Callable[[str, str], bool]] = {
    "equals": str.__eq__,
    "contains": str.__contains__,
    "starts-with": str.startswith,
    "ends-with": str.endswith,
}


class _TextMatch:
    def __init__(self, element: Element) -> None:
        attributes = element.attributes
        collation = COLLATIONS.get(attributes.get("collation", "default"))
        if collation is None:
            raise ConditionError(403, "<C:supported-collation/>")
        match = MATCH_TYPES.get(attributes.get("match-type", "contains"))
        negate = {"yes": True, "no": False}.get(attributes.get("negate-condition", "no"))
        if match is None or negate is None:
            raise _not_understood()
        self._fold = collation
        self._text = collation(element.text)
        self._match = match
        self._negate = negate

    def matches(self, value: str) -> bool:
        return self._match(self._fold(value), self._text) != self._negate


def _test(element: Element) -> Callable[..., bool]:
    """Return ``any`` or ``all``, as the attribute ``test`` requires."""
    test = {"anyof": any, "allof": all}.get(element.attributes.get("test", "anyof"))
    if test is None:
        raise _not_understood()
    return test
