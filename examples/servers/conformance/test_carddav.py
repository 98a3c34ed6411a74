"""Both servers are the same address book, byte for byte, and follow RFC 6352."""

import concurrent.futures
import hashlib
import re
import xml.etree.ElementTree as ElementTree

import pytest

from conftest import BOOK_ROWS, ROWS
from harness import Server
from postgres import Postgres
from program import Answer, same

Servers = dict[str, Server]
Contacts = dict[int, tuple[str, bytes]]

BOOK = "/dav/addressbooks/contacts/"
COLLECTIONS = ["/dav/", "/dav/principal/", "/dav/addressbooks/", BOOK]
D, C, S = "{DAV:}", "{urn:ietf:params:xml:ns:carddav}", "{http://calendarserver.org/ns/}"
SPACES = 'xmlns="DAV:" xmlns:C="urn:ietf:params:xml:ns:carddav" xmlns:S="http://calendarserver.org/ns/"'
XML = "application/xml; charset=utf-8"

CARD = "BEGIN:VCARD\r\nVERSION:4.0\r\nUID:{uid}\r\nFN:{name}\r\nEND:VCARD\r\n"


def card(uid: str, name: str = 'Zoë & <Ångström> "Z"') -> bytes:
    return CARD.format(uid=uid, name=name).encode()


def tag(vcard: bytes) -> str:
    return f'"{hashlib.md5(vcard).hexdigest()}"'


def propfind(servers: Servers, path: str, inner: str, depth: str = "0") -> Answer:
    body = f"<propfind {SPACES}>{inner}</propfind>"
    return same(servers, path, "PROPFIND", {"Depth": depth}, body)


def report(servers: Servers, path: str, kind: str, inner: str, depth: str = "1") -> Answer:
    body = f'<?xml version="1.0"?><C:addressbook-{kind} {SPACES}>{inner}</C:addressbook-{kind}>'
    return same(servers, path, "REPORT", {"Depth": depth, "Content-Type": XML}, body)


def multiget(servers: Servers, hrefs: list[str], data: str = "<C:address-data/>") -> Answer:
    inner = "".join(f"<href>{href}</href>" for href in hrefs)
    return report(servers, BOOK, "multiget", f"<prop><getetag/>{data}</prop>{inner}", "0")


def query(servers: Servers, inner: str, test: str = "anyof", prop: str = "<getetag/>") -> Answer:
    return report(servers, BOOK, "query", f'<prop>{prop}</prop><C:filter test="{test}">{inner}</C:filter>')


def responses(answer: Answer) -> dict[str, ElementTree.Element]:
    """The responses in a multistatus answer, by path."""
    assert answer.status == 207, answer
    assert answer.header("content-type") == XML
    root = ElementTree.fromstring(answer.body)
    assert root.tag == f"{D}multistatus"
    found = {response.findtext(f"{D}href"): response for response in root}
    assert len(found) == len(root), "a path occurs twice"
    return found


def one(answer: Answer, path: str) -> ElementTree.Element | None:
    """The element at a path within the only response."""
    (response,) = responses(answer).values()
    return response.find(f".//{path}")


def condition(answer: Answer) -> str:
    """The only precondition that an answer names."""
    assert answer.header("content-type") == XML
    root = ElementTree.fromstring(answer.body)
    assert root.tag == f"{D}error"
    (child,) = root
    return child.tag


def uid_of(vcard: bytes) -> str:
    return re.search(r"^UID:(?:urn:uuid:)?(.+)\r$", vcard.decode(), re.MULTILINE)[1]


def full_name_of(vcard: bytes) -> str:
    return re.search(r"^FN:(.+)\r$", vcard.decode(), re.MULTILINE)[1]


def href_of(vcard: bytes) -> str:
    return f"{BOOK}{uid_of(vcard)}.vcf"


# Discovery


@pytest.mark.parametrize("method", ["GET", "PROPFIND", "OPTIONS", "HEAD"])
def test_the_well_known_path_leads_to_the_root(servers: Servers, method: str) -> None:
    answer = same(servers, "/.well-known/carddav", method)
    assert (answer.status, answer.header("location")) == (301, "/dav/")


def test_discovery_leads_to_the_address_book(servers: Servers) -> None:
    """RFC 6764, 6; RFC 5397; RFC 6352, 7.1.1."""
    answer = propfind(servers, "/dav/", "<prop><current-user-principal/></prop>")
    principal = one(answer, f"{D}current-user-principal/{D}href").text
    answer = propfind(servers, principal, "<prop><resourcetype/><C:addressbook-home-set/></prop>")
    assert one(answer, f"{D}resourcetype/{D}principal") is not None
    home = one(answer, f"{C}addressbook-home-set/{D}href").text
    found = responses(propfind(servers, home, "<prop><resourcetype/></prop>", "1"))
    books = [href for href, response in found.items() if response.find(f".//{C}addressbook") is not None]
    assert books == [BOOK]
    for path in COLLECTIONS:
        answer = propfind(servers, path, "<prop><current-user-principal/></prop>")
        assert one(answer, f"{D}current-user-principal/{D}href").text == principal


@pytest.mark.parametrize("path", [*COLLECTIONS, f"{BOOK}none.vcf"])
def test_options(servers: Servers, path: str) -> None:
    answer = same(servers, path, "OPTIONS")
    assert answer.status == 200
    assert answer.header("dav") == "1, 3, addressbook"
    allowed = answer.header("allow").split(", ")
    assert {"OPTIONS", "PROPFIND"} <= set(allowed)
    for method in ("GET", "POST", "PUT", "DELETE", "REPORT", "MKCOL", "PROPPATCH", "LOCK", "COPY"):
        refused = same(servers, path, method).status == 405
        assert refused == (method not in allowed), method
        if refused:
            assert same(servers, path, method).header("allow") == answer.header("allow")


@pytest.mark.parametrize("path", [path.removesuffix("/") for path in COLLECTIONS])
def test_a_collection_answers_without_its_slash(servers: Servers, path: str) -> None:
    with_slash = propfind(servers, f"{path}/", "<allprop/>")
    without = propfind(servers, path, "<allprop/>")
    assert without.header("content-location") == f"{path}/"
    assert without.without("content-location") == with_slash


@pytest.mark.parametrize(
    "path",
    ["/dav//", "/davx", "/Dav/", "/%64av/", "/dav%2Fprincipal", "/dav/none", "/dav/principal/x", f"{BOOK}a/b"]
    + [f"{BOOK}{name}" for name in ("a%2Fb", "%FF", "%00", "%0A", ".", "..", "x" * 256)],
)
@pytest.mark.parametrize("method", ["GET", "PROPFIND", "DELETE"])
def test_other_paths_are_not_found(servers: Servers, path: str, method: str) -> None:
    assert same(servers, path, method, {"Depth": "0"}).status == 404


# PROPFIND


def test_all_properties(servers: Servers) -> None:
    """An empty body means allprop. A client must name the properties of documents other than RFC 4918."""
    answer = same(servers, BOOK, "PROPFIND", {"Depth": "0"})
    assert answer == propfind(servers, BOOK, "<allprop/>")
    found = [child.tag for child in one(answer, f"{D}prop")]
    assert found == [f"{D}resourcetype", f"{D}displayname"]
    answer = propfind(servers, BOOK, "<allprop/><include><S:getctag/><owner/></include>")
    assert [child.tag for child in one(answer, f"{D}prop")] == [*found, f"{D}owner", f"{S}getctag"]


@pytest.mark.parametrize("path", COLLECTIONS)
def test_each_named_property_can_be_requested(servers: Servers, path: str) -> None:
    names = [child.tag for child in one(propfind(servers, path, "<propname/>"), f"{D}prop")]
    for name in names:
        namespace, local = name[1:].split("}")
        answer = propfind(servers, path, f'<prop><x:{local} xmlns:x="{namespace}"/></prop>')
        assert one(answer, f"{D}status").text == "HTTP/1.1 200 OK"
        assert len(one(answer, name)) or one(answer, name).text


def test_a_property_that_is_not_there(servers: Servers) -> None:
    inner = '<prop><getetag/><resourcetype/><a xmlns="u:&amp;"/><b xmlns=""/><getetag/></prop>'
    found = one(propfind(servers, BOOK, inner), f"{D}propstat[2]")
    assert found.findtext(f"{D}status") == "HTTP/1.1 404 Not Found"
    assert [child.tag for child in found.find(f"{D}prop")] == [f"{D}getetag", "{u:&}a", "b"]


def test_properties_of_a_contact(servers: Servers, contacts: Contacts) -> None:
    etag, vcard = contacts[7]
    for depth in ("0", "1", "infinity"):
        answer = propfind(servers, href_of(vcard), "<allprop/>", depth)
        assert [child.text for child in one(answer, f"{D}prop")] == [
            None,
            "text/vcard; charset=utf-8",
            str(len(vcard)),
            f'"{etag}"',
        ]
    answer = propfind(servers, href_of(vcard), "<prop><C:address-data/></prop>")
    assert one(answer, f"{D}status").text.split()[1] == "404", "a vCard is not a property (RFC 6352, 10.4)"


def test_a_propfind_of_everything(servers: Servers, contacts: Contacts) -> None:
    """The answer has all 10,000 contacts once, in the order of the table, and takes little memory."""
    before = {name: _peak_memory(server) for name, server in servers.items()}
    found = responses(propfind(servers, BOOK, "<prop><getetag/><resourcetype/></prop>", "1"))
    grown = {name: _peak_memory(server) - before[name] for name, server in servers.items()}
    print("memory grown by", grown)
    assert max(grown.values()) < 4 << 20
    assert found.pop(BOOK).find(f".//{C}addressbook") is not None
    assert [(href, response.findtext(f".//{D}getetag")) for href, response in found.items()] == [
        (href_of(vcard), f'"{etag}"') for _number, (etag, vcard) in sorted(contacts.items())
    ]


@pytest.mark.parametrize("path", COLLECTIONS)
@pytest.mark.parametrize("headers", [{}, {"Depth": "infinity"}, {"Depth": "Infinity"}])
def test_a_depth_without_end_is_refused(servers: Servers, path: str, headers: dict[str, str]) -> None:
    answer = same(servers, path, "PROPFIND", headers)
    assert (answer.status, condition(answer)) == (403, f"{D}propfind-finite-depth")


@pytest.mark.parametrize(
    "body",
    [
        "text",
        "<propfind/>",
        '<propfind xmlns="DAV:"/>',
        '<prop xmlns="DAV:"><getetag/></prop>',
        '<propfind xmlns="DAV:"><allprop/>',
        '<propfind xmlns="DAV:"><allprop/></propfind><a/>',
        '<propfind xmlns="DAV:"><allprop/></propfind>text',
        '<propfind xmlns="DAV:"><x:allprop/></propfind>',
        '<propfind xmlns="DAV:"><allprop></propfind></allprop>',
        '<propfind xmlns="DAV:"><allprop a="" a=""/></propfind>',
        '<propfind xmlns="DAV:"><allprop a="<"/></propfind>',
        '<propfind xmlns="DAV:"><allprop a=b/></propfind>',
        '<propfind xmlns="DAV:"a=""><allprop/></propfind>',
        '<propfind xmlns="DAV:" xmlns:a=""><allprop/></propfind>',
        '<propfind xmlns="DAV:"><allprop/><a xmlns="b c"/></propfind>',
        '<propfind xmlns="DAV:"><allprop/><a\ufeff/></propfind>',
        '<propfind xmlns="DAV:"><allprop/>]]></propfind>',
        '<?a=b c?><propfind xmlns="DAV:"><allprop/></propfind>',
        '<?xml version="1.0" a="b"?><propfind xmlns="DAV:"><allprop/></propfind>',
        '<?xml ver="1.0"?><propfind xmlns="DAV:"><allprop/></propfind>',
        '<propfind xmlns="DAV:"><allprop x:a="b"/></propfind>',
        '<propfind xmlns="DAV:"><allprop/>&nbsp;</propfind>',
        '<propfind xmlns="DAV:"><allprop/>&#0;</propfind>',
        '<propfind xmlns="DAV:"><allprop/>& </propfind>',
        '<propfind xmlns="DAV:"><allprop/>\x02</propfind>',
        '<propfind xmlns="DAV:"><allprop/><!-- -- --></propfind>',
        ' <?xml version="1.0"?><propfind xmlns="DAV:"><allprop/></propfind>',
        '<!DOCTYPE propfind><propfind xmlns="DAV:"><allprop/></propfind>',
        '<!DOCTYPE a [<!ENTITY b "<allprop/>">]><propfind xmlns="DAV:">&b;</propfind>',
        '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/hostname">]><propfind xmlns="DAV:">&b;</propfind>',
        '<propfind xmlns="DAV:"><allprop/>' + "<a>" * 40 + "</a>" * 40 + "</propfind>",
        b'<propfind xmlns="DAV:"><allprop/>\xe9</propfind>',
        '<propfind xmlns="DAV:"><allprop/></propfind>'.encode("utf-16"),
    ],
)
def test_a_body_that_is_no_propfind_is_refused(servers: Servers, body: str | bytes) -> None:
    assert same(servers, BOOK, "PROPFIND", {"Depth": "0"}, body).status == 400


@pytest.mark.parametrize(
    "body",
    [
        '\ufeff<?xml version="1.0" encoding="utf-8"?>\r\n<propfind xmlns="DAV:"><allprop/></propfind>\r\n',
        '<!-- a --><?b c?><x:propfind xmlns:x="DAV:">&amp;&#65;<![CDATA[<]]><x:allprop/><y/></x:propfind>',
    ],
)
def test_a_body_may_be_any_xml(servers: Servers, body: str) -> None:
    assert same(servers, BOOK, "PROPFIND", {"Depth": "0"}, body) == propfind(servers, BOOK, "<allprop/>")


@pytest.mark.parametrize("depth", ["2", "", "0, 1", "-1"])
def test_other_depths_are_refused(servers: Servers, depth: str) -> None:
    assert same(servers, BOOK, "PROPFIND", {"Depth": depth}).status == 400


@pytest.mark.parametrize("method", ["PROPFIND", "REPORT"])
def test_a_body_that_is_too_large_is_refused(servers: Servers, method: str) -> None:
    assert same(servers, BOOK, method, {"Depth": "0"}, b" " * (1 << 20) + b"x").status == 413


# REPORT


def test_a_multiget_of_everything(servers: Servers, contacts: Contacts) -> None:
    """Every vCard passes through XML unchanged, carriage returns included."""
    table = sorted(contacts.items())
    before = {name: _peak_memory(server) for name, server in servers.items()}
    found = responses(multiget(servers, [href_of(vcard) for _, (_, vcard) in table]))
    print("memory grown by", {name: _peak_memory(server) - before[name] for name, server in servers.items()})
    assert [
        (href, response.findtext(f".//{D}getetag"), response.findtext(f".//{C}address-data").encode())
        for href, response in found.items()
    ] == [(href_of(vcard), f'"{etag}"', vcard) for _, (etag, vcard) in table]
    assert len(found) == ROWS


def test_a_multiget_of_missing_contacts(servers: Servers, contacts: Contacts) -> None:
    there = href_of(contacts[1][1])
    asked = [
        f"http://example.org{there}",
        there,
        f"{BOOK}none.vcf",
        "/dav/principal/",
        "none&amp;",
        there.replace(".vcf", "%2Evcf"),
        f"  {there}\n",
    ]
    answer = multiget(servers, asked)
    root = ElementTree.fromstring(answer.body)
    assert [(each.findtext(f"{D}href"), each.findtext(f".//{D}status").split()[1]) for each in root] == [
        (there, "200"),
        (there, "200"),
        (f"{BOOK}none.vcf", "404"),
        ("/dav/principal/", "404"),
        ("none&", "404"),
        (there, "200"),
    ]


def test_reports_at_a_contact_are_about_it_alone(servers: Servers, contacts: Contacts) -> None:
    own, other = href_of(contacts[1][1]), href_of(contacts[2][1])
    inner = f"<prop><getetag/></prop><href>{own}</href><href>{other}</href>"
    found = responses(report(servers, own, "multiget", inner))
    assert [each.findtext(f".//{D}status").split()[1] for each in found.values()] == ["200", "404"]
    assert list(responses(report(servers, own, "query", "<C:filter/>", "0"))) == [own]
    inner = '<C:filter><C:prop-filter name="X"/></C:filter>'
    assert not responses(report(servers, own, "query", inner, "0"))


def test_a_version_that_a_contact_does_not_have(servers: Servers, contacts: Contacts) -> None:
    """RFC 6352, 8.7.2: the server converts nothing, and reports 415 for each contact."""
    hrefs = [href_of(contacts[number][1]) for number in (1, 2)]
    found = responses(multiget(servers, hrefs, '<C:address-data content-type="text/vcard" version="4.0"/>'))
    assert found[hrefs[0]].findtext(f"{D}status").split()[1] == "415"
    assert found[hrefs[0]].find(f"{D}error/{C}supported-address-data-conversion") is not None
    assert found[hrefs[1]].findtext(f".//{C}address-data").encode() == contacts[2][1]


def test_some_of_a_contact(servers: Servers, contacts: Contacts) -> None:
    data = '<C:address-data><C:prop name="VERSION"/><C:prop name="fn"/></C:address-data>'
    vcard = contacts[1][1]
    (found,) = responses(multiget(servers, [href_of(vcard)], data)).values()
    name = full_name_of(vcard)
    expected = f"BEGIN:VCARD\r\nVERSION:3.0\r\nFN:{name}\r\nEND:VCARD\r\n"
    assert found.findtext(f".//{C}address-data") == expected


def test_a_query_by_uid(servers: Servers, contacts: Contacts) -> None:
    for number in (2, 9999):
        vcard = contacts[number][1]
        match = f'<C:text-match match-type="ends-with">{uid_of(vcard).upper()}</C:text-match>'
        found = query(servers, f'<C:prop-filter name="UID">{match}</C:prop-filter>', prop="<C:address-data/>")
        assert list(responses(found)) == [href_of(vcard)]
        assert one(found, f"{C}address-data").text.encode() == vcard


@pytest.mark.parametrize(
    ("match_type", "text"),
    [
        ("contains", "müller"),
        ("contains", "MU\u0308LLER"),
        ("starts-with", "zoë"),
        ("ends-with", "SVENSSON"),
        ("equals", "{name}"),
        ("contains", "nobody"),
    ],
)
def test_a_query_by_full_name(books: Servers, contacts: Contacts, match_type: str, text: str) -> None:
    table = [contacts[number][1] for number in range(1, BOOK_ROWS + 1)]
    text = text.format(name=full_name_of(table[2]).upper())

    def fold(value: str) -> str:
        return value.replace("u\u0308", "ü").replace("U\u0308", "Ü").lower()

    holds = {
        "equals": str.__eq__,
        "contains": str.__contains__,
        "starts-with": str.startswith,
        "ends-with": str.endswith,
    }[match_type]
    expected = [href_of(vcard) for vcard in table if holds(fold(full_name_of(vcard)), fold(text))]
    match = f'<C:text-match match-type="{match_type}">{text}</C:text-match>'
    answer = query(books, f'<C:prop-filter name="FN">{match}</C:prop-filter>')
    assert list(responses(answer)) == expected
    assert bool(expected) == (text != "nobody")


FULL_NAME = '<C:prop-filter name="FN"><C:text-match{}>ö</C:text-match></C:prop-filter>'
NURSE = '<C:prop-filter name="TITLE"><C:text-match>nurse</C:text-match></C:prop-filter>'


@pytest.mark.parametrize(
    ("test", "inner", "holds"),
    [
        ("anyof", "", lambda name, title: True),
        ("anyof", FULL_NAME.format("") + NURSE, lambda name, title: "ö" in name or title == "Nurse"),
        ("allof", FULL_NAME.format("") + NURSE, lambda name, title: "ö" in name and title == "Nurse"),
        ("anyof", FULL_NAME.format(' negate-condition="yes"'), lambda name, title: "ö" not in name),
        ("anyof", FULL_NAME.format(' collation="i;ascii-casemap"'), lambda name, title: "ö" in name),
        ("anyof", '<C:prop-filter name="NOTE"/>', lambda name, title: False),
        (
            "anyof",
            '<C:prop-filter name="NOTE"><C:is-not-defined/></C:prop-filter>',
            lambda name, title: True,
        ),
    ],
)
def test_a_query_with_several_conditions(books: Servers, test: str, inner: str, holds) -> None:
    everything = query(books, "", prop="<C:address-data/>")
    expected = []
    for href, response in responses(everything).items():
        vcard = response.findtext(f".//{C}address-data")
        title = re.search("^TITLE:(.*)\r$", vcard, re.MULTILINE)[1]
        if holds(full_name_of(vcard.encode()), title):
            expected.append(href)
    assert list(responses(query(books, inner, test))) == expected
    assert len(responses(everything)) == BOOK_ROWS


@pytest.mark.parametrize(("limit", "more"), [(1, True), (250, True), (300, False), (1000, False)])
def test_a_query_with_a_limit(books: Servers, limit: int, more: bool) -> None:
    inner = f"<prop/><C:filter/><C:limit><C:nresults>{limit}</C:nresults></C:limit>"
    found = responses(report(books, BOOK, "query", inner))
    assert (BOOK in found) == more
    if more:
        assert found[BOOK].findtext(f"{D}status").split()[1] == "507"
        assert found[BOOK].find(f"{D}error/{D}number-of-matches-within-limits") is not None
        del found[BOOK]
    assert len(found) == min(limit, BOOK_ROWS)


def test_a_query_of_depth_0_is_about_no_contact(servers: Servers) -> None:
    for headers in ({}, {"Depth": "0"}):
        body = f"<C:addressbook-query {SPACES}><C:filter/></C:addressbook-query>"
        assert not responses(same(servers, BOOK, "REPORT", headers, body))


@pytest.mark.parametrize(
    ("kind", "inner", "status", "expected"),
    [
        ("query", "", 400, None),
        ("multiget", "<prop/>", 400, None),
        ("query", "<C:filter test='some'/>", 400, None),
        ("query", "<C:filter><C:prop-filter/></C:filter>", 400, None),
        ("query", "<C:filter/><C:limit><C:nresults>0</C:nresults></C:limit>", 400, None),
        ("query", "<C:filter/><C:limit><C:nresults>\u0661</C:nresults></C:limit>", 400, None),
        ("query", "<C:filter/><C:limit/>", 400, None),
        ("none", "", 403, f"{D}supported-report"),
        (
            "query",
            "<C:filter><C:prop-filter name='FN'><C:param-filter name='A\"'/></C:prop-filter></C:filter>",
            403,
            f"{C}supported-filter",
        ),
        (
            "query",
            "<C:filter><C:prop-filter name='FN'>"
            "<C:text-match collation='i;octet'>a</C:text-match></C:prop-filter></C:filter>",
            403,
            f"{C}supported-collation",
        ),
        (
            "query",
            "<prop><C:address-data content-type='application/vcard+json'/></prop><C:filter/>",
            403,
            f"{C}supported-address-data",
        ),
        (
            "multiget",
            "<prop><C:address-data version='2.1'/></prop><href>a</href>",
            403,
            f"{C}supported-address-data",
        ),
    ],
)
def test_a_report_that_cannot_be_given(
    servers: Servers, kind: str, inner: str, status: int, expected: str | None
) -> None:
    answer = report(servers, BOOK, kind, inner)
    assert answer.status == status
    if expected:
        assert condition(answer) == expected


# GET, PUT and DELETE


def test_a_contact_is_got(servers: Servers, contacts: Contacts) -> None:
    for number in (1, 2, ROWS):
        etag, vcard = contacts[number]
        answer = same(servers, href_of(vcard))
        assert (answer.status, answer.body, answer.header("etag")) == (200, vcard, f'"{etag}"')
        assert same(servers, href_of(vcard), "HEAD") == answer._replace(body=b"")
        assert same(servers, href_of(vcard), headers={"If-None-Match": f'"{etag}"'}).status == 304
        assert same(servers, href_of(vcard), headers={"If-Match": f'"{etag}"'}).status == 200
        assert same(servers, href_of(vcard), headers={"If-Match": '"other"'}).status == 412
    assert same(servers, f"{BOOK}none.vcf").status == 404


def test_the_life_of_a_contact(books: Servers) -> None:
    """A contact is created, found on every path, changed only with its current tag, and deleted."""
    path, first, second = f"{BOOK}a%20b%C3%A9.vcf", card("urn:uuid:life"), card("life", "Someone else")
    made = same(
        books, path, "PUT", {"Content-Type": "text/vcard; charset=utf-8", "If-None-Match": "*"}, first
    )
    assert (made.status, made.header("etag"), made.body) == (201, tag(first), b"")
    assert same(books, path).body == first
    assert path in responses(propfind(books, BOOK, "<prop/>", "1"))
    assert one(multiget(books, [path]), f"{C}address-data").text.encode() == first

    for headers in (
        {"If-None-Match": "*"},
        {"If-None-Match": tag(first)},
        {"If-Match": tag(second)},
        {"If-Match": f"W/{tag(first)}"},
        {"If-Match": tag(first).strip('"')},
        {"If-Match": ""},
    ):
        for method, body in (("PUT", second), ("DELETE", None)):
            assert same(books, path, method, headers, body).status == 412, (method, headers)
    assert same(books, path).body == first

    changed = same(books, path, "PUT", {"If-Match": f'"x", {tag(first)}'}, second)
    assert (changed.status, changed.header("etag")) == (204, tag(second))
    answer = same(books, path, headers={"If-None-Match": tag(first)})
    assert (answer.status, answer.body) == (200, second)
    assert same(books, path, "PUT", {"If-Match": "*"}, first).status == 204
    assert same(books, path, "DELETE", {"If-Match": tag(first)}).status == 204
    assert same(books, path).status == 404
    assert same(books, path, "DELETE").status == 404
    assert same(books, path, "PUT", {"If-Match": "*"}, first).status == 412


def test_a_contact_may_be_folded_and_have_any_line_ends(books: Servers) -> None:
    path = f"{BOOK}folded.vcf"
    for body in (
        card("folded").replace(b"UID:f", b'U\r\n ID;X=":":\r\n\tf'),
        card("folded").replace(b"\r\n", b"\n").rstrip(),
        card("folded").replace(b"UID", b"item1.uid"),
    ):
        assert same(books, path, "PUT", {"Content-Type": "text/vcard"}, body).status in (201, 204)
        assert same(books, path).body == body
    assert same(books, path, "DELETE").status == 204


@pytest.mark.parametrize(
    ("headers", "body", "status", "expected"),
    [
        ({"Content-Type": "text/plain"}, card("a"), 415, f"{C}supported-address-data"),
        ({"Content-Type": "text/vcard; charset=latin1"}, card("a"), 415, f"{C}supported-address-data"),
        ({"Content-Encoding": "gzip"}, card("a"), 415, f"{C}supported-address-data"),
        ({}, card("a").replace(b"4.0", b"2.1"), 415, f"{C}supported-address-data"),
        ({"Content-Range": "bytes 0-9/10"}, card("a"), 400, None),
        ({}, None, 403, f"{C}valid-address-data"),
        ({}, b"BEGIN:VCARD\r\nEND:VCARD\r\n", 403, f"{C}valid-address-data"),
        ({}, card(""), 403, f"{C}valid-address-data"),
        ({}, card("x" * 256), 403, f"{C}valid-address-data"),
        ({}, card("a") * 2, 403, f"{C}valid-address-data"),
        ({}, card("a").replace(b"FN", b"NOTE"), 403, f"{C}valid-address-data"),
        ({}, card("a").replace(b"VERSION:4.0\r\n", b""), 403, f"{C}valid-address-data"),
        ({}, card("a", "x\r\nUID:b"), 403, f"{C}valid-address-data"),
        ({}, card("a", "x\r\nno colon"), 403, f"{C}valid-address-data"),
        ({}, card("a", "x\r\n\r\ny:z"), 403, f"{C}valid-address-data"),
        ({}, card("a", "\0"), 403, f"{C}valid-address-data"),
        ({}, card("a", "\ufffe"), 403, f"{C}valid-address-data"),
        ({}, card("a").replace("ë".encode(), b"\xeb"), 403, f"{C}valid-address-data"),
        ({}, card("a", "x" * (1 << 20)), 413, f"{C}max-resource-size"),
    ],
)
def test_a_body_that_is_no_contact_is_refused(
    books: Servers, headers: dict[str, str], body: bytes | None, status: int, expected: str | None
) -> None:
    answer = same(books, f"{BOOK}refused.vcf", "PUT", headers, body)
    assert answer.status == status
    if expected:
        assert condition(answer) == expected
    assert same(books, f"{BOOK}refused.vcf").status == 404


def test_a_large_contact_is_taken(books: Servers) -> None:
    body = card("large", "x" * ((1 << 20) - len(card("large", ""))))
    assert same(books, f"{BOOK}large.vcf", "PUT", {"Expect": "100-continue"}, body).status == 201
    assert same(books, f"{BOOK}large.vcf").body == body
    assert same(books, f"{BOOK}large.vcf", "DELETE").status == 204


@pytest.mark.parametrize(
    "path", ["/dav/x", "/dav/addressbooks/other/a.vcf", f"{BOOK}a/b.vcf", f"{BOOK}a%2Fb"]
)
def test_contacts_have_one_place(books: Servers, path: str) -> None:
    assert same(books, path, "PUT", body=card("a")).status == 409


def test_a_uid_is_there_once(books: Servers) -> None:
    """RFC 6352, 6.3.2.1: a UID neither occurs twice nor changes; the answer names the contact that has it."""
    one_path, other_path = f"{BOOK}one.vcf", f"{BOOK}other.vcf"
    assert same(books, one_path, "PUT", body=card("once")).status == 201
    for path, uid in ((other_path, "once"), (other_path, "URN:UUID:once"), (one_path, "twice")):
        answer = same(books, path, "PUT", body=card(uid))
        assert (answer.status, condition(answer)) == (409, f"{C}no-uid-conflict")
        assert ElementTree.fromstring(answer.body).findtext(f".//{D}href") == one_path
    for path, uid in ((one_path, "twice"), (other_path, "once")):
        assert same(books, other_path, "PUT", body=card("twice")).status in (201, 204)
        answer = same(books, path, "PUT", body=card(uid))
        assert ElementTree.fromstring(answer.body).findtext(f".//{D}href") != path, (
            "who has the UID comes first"
        )
    assert same(books, one_path, "DELETE").status == 204
    assert same(books, other_path, "DELETE").status == 204
    assert same(books, other_path, "PUT", body=card("once")).status == 201
    assert same(books, other_path, "DELETE").status == 204


def test_of_many_writers_at_once_one_wins(books: Servers) -> None:
    """Eight writers use one UID at eight paths, then one path."""
    for server in books.values():
        with concurrent.futures.ThreadPoolExecutor(8) as threads:

            def put(path: str, name: str, server: Server = server) -> int:
                headers = {"If-None-Match": "*"}
                return server.ask(f"{BOOK}{path}.vcf", "PUT", headers, card("race", name)).status

            statuses = list(threads.map(put, "abcdefgh", "abcdefgh"))
            assert sorted(statuses) == [201] + [409] * 7
            path = "abcdefgh"[statuses.index(201)]
            assert server.ask(f"{BOOK}{path}.vcf", "DELETE").status == 204
            assert sorted(threads.map(put, "aaaaaaaa", "abcdefgh")) == [201] + [412] * 7
            assert server.ask(f"{BOOK}a.vcf", "DELETE").status == 204


def test_the_collection_tag_changes_with_the_collection(books: Servers) -> None:
    def ctag() -> str:
        return one(propfind(books, BOOK, "<prop><S:getctag/></prop>"), f"{S}getctag").text

    path, tags = f"{BOOK}tagged.vcf", [ctag()]
    assert ctag() == tags[0]
    for method, body in (("PUT", card("tagged")), ("PUT", card("tagged", "b")), ("DELETE", None)):
        assert same(books, path, method, body=body).status < 300
        tags.append(ctag())
    assert len(set(tags)) == 3
    assert tags[0] == tags[3]


def test_writing_leaves_the_table_as_it_was(books: Servers, postgres: Postgres) -> None:
    """Runs after all tests that write: they removed what they created, and changed nothing else."""
    sql = "SELECT count(*), md5(string_agg(contacts::text, ',' ORDER BY id)) FROM contacts"
    digests = {postgres.psql(sql, database=f"book_{name}") for name in books}
    assert digests == {postgres.psql(sql.replace("FROM contacts", f"FROM contacts WHERE id <= {BOOK_ROWS}"))}


# Authentication


def test_basic_authentication_is_off_by_default_and_can_be_demanded(
    start, postgres: Postgres, contacts: Contacts
) -> None:
    guarded = {
        name: start(name, DATABASE_URL=postgres.url(), POOL_SIZE="1", BASIC_AUTH="ann:sé:cret")
        for name in ("rust", "python")
    }
    for server in guarded.values():
        server.wait_ready()
    key = "/contacts/00000000-0000-4000-8000-000000000000"
    assert same(guarded, "/.well-known/carddav").status == 301
    for path in (BOOK, href_of(contacts[1][1]), key):
        for headers in (
            {},
            {"Authorization": "Basic YW5uOg=="},
            {"Authorization": "Bearer YW5uOnPDqTpjcmV0"},
        ):
            answer = same(guarded, path, "OPTIONS" if path == BOOK else "GET", headers)
            assert answer.status == 401
            assert answer.header("www-authenticate") == 'Basic realm="contacts", charset="UTF-8"'
            assert b"BEGIN" not in answer.body
        answer = same(
            guarded, path, "OPTIONS" if path == BOOK else "GET", {"Authorization": "basic YW5uOnPDqTpjcmV0"}
        )
        assert answer.status == 200
    for server in guarded.values():
        server.end()


def _peak_memory(server: Server) -> int:
    """The largest resident set of a server so far, in bytes."""
    with open(f"/proc/{server.process.pid}/status", encoding="ascii") as status:
        return int(re.search(r"^VmHWM:\s+(\d+) kB$", status.read(), re.MULTILINE)[1]) * 1024
