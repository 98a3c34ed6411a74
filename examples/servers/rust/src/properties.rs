//! The resources of the address book, their properties, and the answers that contain them. Each has one written
//! form, because all candidates must send the same bytes.

use std::fmt::Write;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::vcard;
use crate::xml::{CALENDARSERVER, CARDDAV, DAV, Element, Name, escape, is_character};

/// Maximum size of a request's body, and therefore of a contact, in bytes.
pub(crate) const MAXIMUM_BYTES: usize = 1 << 20;
/// Maximum length of a contact's name, in bytes.
const NAME_BYTES: usize = 255;

const BOOK: &str = "/dav/addressbooks/contacts/";

const DECLARATIONS: &str = r#"xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:carddav" xmlns:S="http://calendarserver.org/ns/""#;
const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n";
/// The end of every multistatus answer.
pub(crate) const MULTISTATUS_END: &str = "</D:multistatus>\n";

/// All characters except the unreserved characters of RFC 3986 and `@`.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'@');

/// The resource at a path below `/dav`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    /// `/dav/`, the start of discovery.
    Root,
    /// The only principal, the owner of the address book.
    Principal,
    /// The principal's collection of address books.
    Home,
    /// The address book.
    Book,
    /// A contact in the address book, existing or not, by the last segment of the path.
    Contact(String),
}

impl Resource {
    /// The resource at the percent-encoded path of a request; the last slash of a collection may be missing.
    pub(crate) fn at(path: &str) -> Option<Self> {
        match path.strip_suffix('/').unwrap_or(path) {
            "/dav" => Some(Self::Root),
            "/dav/principal" => Some(Self::Principal),
            "/dav/addressbooks" => Some(Self::Home),
            "/dav/addressbooks/contacts" => Some(Self::Book),
            _ => contact_name(path).map(Self::Contact),
        }
    }

    /// The resource's path, percent-encoded; the path of a collection ends with a slash.
    pub(crate) fn href(&self) -> String {
        match self {
            Self::Root => "/dav/".to_owned(),
            Self::Principal => "/dav/principal/".to_owned(),
            Self::Home => "/dav/addressbooks/".to_owned(),
            Self::Book => BOOK.to_owned(),
            Self::Contact(name) => contact_href(name),
        }
    }

    /// The methods that the resource supports.
    pub(crate) fn allow(&self) -> &'static str {
        match self {
            Self::Root | Self::Principal | Self::Home => "OPTIONS, PROPFIND",
            Self::Book => "OPTIONS, PROPFIND, REPORT",
            Self::Contact(_) => "OPTIONS, GET, HEAD, PUT, DELETE, PROPFIND, REPORT",
        }
    }

    /// The collections directly inside this resource.
    pub(crate) fn collections(&self) -> &'static [Self] {
        match self {
            Self::Root => &[Self::Principal, Self::Home],
            Self::Home => &[Self::Book],
            Self::Principal | Self::Book | Self::Contact(_) => &[],
        }
    }

    /// The properties of the resource, in the order of the answer.
    fn properties(&self) -> &'static [&'static str] {
        match self {
            Self::Root => &[
                "D:resourcetype",
                "D:displayname",
                "D:current-user-principal",
            ],
            Self::Principal => &[
                "D:resourcetype",
                "D:displayname",
                "D:current-user-principal",
                "D:principal-URL",
                "C:addressbook-home-set",
            ],
            Self::Home => &[
                "D:resourcetype",
                "D:displayname",
                "D:current-user-principal",
                "D:owner",
                "D:current-user-privilege-set",
            ],
            Self::Book => &[
                "D:resourcetype",
                "D:displayname",
                "D:current-user-principal",
                "D:owner",
                "D:current-user-privilege-set",
                "D:supported-report-set",
                "C:addressbook-description",
                "C:supported-address-data",
                "C:supported-collation-set",
                "C:max-resource-size",
                "S:getctag",
            ],
            Self::Contact(_) => &[
                "D:resourcetype",
                "D:getcontenttype",
                "D:getcontentlength",
                "D:getetag",
                "D:current-user-principal",
                "D:owner",
                "D:current-user-privilege-set",
                "D:supported-report-set",
            ],
        }
    }

    /// The value of a property as XML; `facts` come from the database.
    fn value(&self, property: &str, facts: &Facts<'_>) -> String {
        let fixed = match (property, self) {
            ("D:resourcetype", Self::Root | Self::Home) => "<D:collection/>",
            ("D:resourcetype", Self::Principal) => "<D:collection/><D:principal/>",
            ("D:resourcetype", Self::Book) => "<D:collection/><C:addressbook/>",
            ("D:displayname", Self::Root) => "Contacts server",
            ("D:displayname", Self::Principal) => "Owner",
            ("D:displayname", Self::Home) => "Address books",
            ("D:displayname", Self::Book) => "Contacts",
            ("D:getcontenttype", _) => "text/vcard; charset=utf-8",
            ("D:current-user-principal" | "D:principal-URL" | "D:owner", _) => {
                "<D:href>/dav/principal/</D:href>"
            }
            ("D:current-user-privilege-set", Self::Home) => {
                "<D:privilege><D:read/></D:privilege>\
                 <D:privilege><D:read-current-user-privilege-set/></D:privilege>"
            }
            ("D:current-user-privilege-set", _) => {
                "<D:privilege><D:read/></D:privilege>\
                 <D:privilege><D:read-current-user-privilege-set/></D:privilege>\
                 <D:privilege><D:write-content/></D:privilege>\
                 <D:privilege><D:bind/></D:privilege>\
                 <D:privilege><D:unbind/></D:privilege>"
            }
            ("D:supported-report-set", _) => {
                "<D:supported-report><D:report><C:addressbook-multiget/></D:report></D:supported-report>\
                 <D:supported-report><D:report><C:addressbook-query/></D:report></D:supported-report>"
            }
            ("C:addressbook-home-set", _) => "<D:href>/dav/addressbooks/</D:href>",
            ("C:addressbook-description", _) => "The contacts in the database",
            ("C:supported-address-data", _) => {
                "<C:address-data-type content-type=\"text/vcard\" version=\"3.0\"/>\
                 <C:address-data-type content-type=\"text/vcard\" version=\"4.0\"/>"
            }
            ("C:supported-collation-set", _) => {
                "<C:supported-collation>i;ascii-casemap</C:supported-collation>\
                 <C:supported-collation>i;unicode-casemap</C:supported-collation>"
            }
            ("C:max-resource-size", _) => return MAXIMUM_BYTES.to_string(),
            ("D:getcontentlength", _) => return facts.length.to_string(),
            ("D:getetag", _) => return format!("&quot;{}&quot;", facts.etag),
            ("S:getctag", _) => facts.etag,
            _ => "",
        };
        fixed.to_owned()
    }
}

/// The values from the database that the properties of a resource need.
#[derive(Clone, Copy, Default)]
pub(crate) struct Facts<'a> {
    /// A contact's entity tag without quotes, or the address book's collection tag.
    pub(crate) etag: &'a str,
    /// A contact's length in bytes.
    pub(crate) length: i32,
}

/// The name of the contact at a path, if it can have one.
pub(crate) fn contact_name(path: &str) -> Option<String> {
    let name = percent_decode_str(path.strip_prefix(BOOK)?)
        .decode_utf8()
        .ok()?;
    let fits = (1..=NAME_BYTES).contains(&name.len())
        && !matches!(name.as_ref(), "." | "..")
        && name
            .chars()
            .all(|c| is_character(c) && !c.is_ascii_control() && c != '/');
    fits.then(|| name.into_owned())
}

fn contact_href(name: &str) -> String {
    format!("{BOOK}{}", utf8_percent_encode(name, ENCODED))
}

/// The properties that a request asks for.
#[derive(Debug)]
pub(crate) enum Wanted {
    /// The properties of RFC 4918, and the named properties.
    All(Vec<Name>),
    /// Only the names of all properties.
    Names,
    /// The named properties.
    These(Vec<Name>),
}

impl Wanted {
    /// Reads `allprop` with `include`, `propname` or `prop`; `None` if the root contains none.
    pub(crate) fn of(root: &Element) -> Option<Self> {
        let names = |element: &Element| {
            let mut names: Vec<Name> = Vec::new();
            for child in &element.children {
                if !names.contains(&child.name) {
                    names.push(child.name.clone());
                }
            }
            names
        };
        if let Some(prop) = root.child(DAV, "prop") {
            return Some(Self::These(names(prop)));
        }
        if root.child(DAV, "propname").is_some() {
            return Some(Self::Names);
        }
        root.child(DAV, "allprop")?;
        Some(Self::All(
            root.child(DAV, "include").map(names).unwrap_or_default(),
        ))
    }
}

/// The properties of `allprop` (RFC 4918, 9.1). A client must name the properties of other documents.
const ALL: [&str; 5] = [
    "D:resourcetype",
    "D:displayname",
    "D:getcontenttype",
    "D:getcontentlength",
    "D:getetag",
];

/// The answer to one `Wanted` for all resources of one kind: computed once, written for each resource.
pub(crate) struct Plan {
    found: Vec<&'static str>,
    missing: String,
    names_only: bool,
}

impl Plan {
    /// The plan for resources of the kind of `resource`.
    pub(crate) fn new(wanted: &Wanted, resource: &Resource) -> Self {
        let has = resource.properties();
        let (names, all, names_only): (&[Name], &[&str], bool) = match wanted {
            Wanted::All(names) => (names, &ALL, false),
            Wanted::Names => (&[], has, true),
            Wanted::These(names) => (names, &[], false),
        };
        let asked: Vec<_> = names.iter().map(|name| (name, qualified(name))).collect();
        Self {
            found: has
                .iter()
                .copied()
                .filter(|own| all.contains(own) || asked.iter().any(|(_, name)| name == own))
                .collect(),
            missing: asked
                .iter()
                .filter(|(_, name)| !has.contains(&name.as_str()))
                .map(|(name, _)| name.empty_element())
                .collect(),
            names_only,
        }
    }

    /// Whether the answer has the value of this property.
    pub(crate) fn has(&self, property: &str) -> bool {
        !self.names_only && self.found.contains(&property)
    }

    /// Writes the response for a resource; `data` is the element with its vCard, if the answer has one.
    pub(crate) fn write(
        &self,
        out: &mut String,
        resource: &Resource,
        facts: &Facts<'_>,
        data: &str,
    ) {
        let mut found = String::new();
        for property in &self.found {
            let value = if self.names_only {
                String::new()
            } else {
                resource.value(property, facts)
            };
            if value.is_empty() {
                found.extend(["<", property, "/>"]);
            } else {
                found.extend(["<", property, ">", &value, "</", property, ">"]);
            }
        }
        found.push_str(data);
        out.extend(["<D:response><D:href>", &resource.href(), "</D:href>"]);
        if !found.is_empty() || self.missing.is_empty() {
            write_propstat(out, &found, "200 OK");
        }
        if !self.missing.is_empty() {
            write_propstat(out, &self.missing, "404 Not Found");
        }
        out.push_str("</D:response>\n");
    }
}

fn write_propstat(out: &mut String, properties: &str, status: &str) {
    // Writing into a string cannot fail.
    let _ = write!(
        out,
        "<D:propstat><D:prop>{properties}</D:prop><D:status>HTTP/1.1 {status}</D:status></D:propstat>"
    );
}

/// Writes the response for a resource as a whole; `error` is an element with details, or empty.
pub(crate) fn write_status(out: &mut String, href: &str, status: &str, error: &str) {
    out.extend(["<D:response><D:href>", &escape(href), "</D:href><D:status>"]);
    out.extend(["HTTP/1.1 ", status, "</D:status>"]);
    if !error.is_empty() {
        out.extend(["<D:error>", error, "</D:error>"]);
    }
    out.push_str("</D:response>\n");
}

/// The begin of every multistatus answer.
pub(crate) fn multistatus_begin() -> String {
    format!("{DECLARATION}<D:multistatus {DECLARATIONS}>\n")
}

/// The body that names the failed precondition.
pub(crate) fn error_body(condition: &str) -> String {
    format!("{DECLARATION}<D:error {DECLARATIONS}>{condition}</D:error>\n")
}

/// The name with the server's prefix; empty if the server does not know the namespace.
fn qualified(name: &Name) -> String {
    match name.namespace.as_str() {
        DAV => format!("D:{}", name.local),
        CARDDAV => format!("C:{}", name.local),
        CALENDARSERVER => format!("S:{}", name.local),
        _ => String::new(),
    }
}

/// The form of the vCards in a report (RFC 6352, 10.4).
#[derive(Debug)]
pub(crate) struct AddressData {
    /// The requested version; `None` allows any.
    pub(crate) version: Option<String>,
    /// The requested properties; empty means all.
    pub(crate) properties: Vec<String>,
}

impl AddressData {
    /// The element with the vCard in it. `None` if the vCard has another version.
    pub(crate) fn element(&self, card: &str) -> Option<String> {
        if let Some(version) = &self.version {
            let unfolded = vcard::unfold(card);
            vcard::lines(&unfolded).find(|line| line.is("VERSION") && line.value == version)?;
        }
        let data = if self.properties.is_empty() {
            escape(card)
        } else {
            escape(&vcard::only(card, &self.properties))
        };
        Some(format!("<C:address-data>{data}</C:address-data>"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("/dav", Some(Resource::Root))]
    #[case("/dav/", Some(Resource::Root))]
    #[case("/dav//", None)]
    #[case("/dav/addressbooks/contacts", Some(Resource::Book))]
    #[case("/dav/addressbooks/contacts/a%20b.vcf", Some(Resource::Contact("a b.vcf".into())))]
    #[case("/dav/addressbooks/contacts/%C3%A9", Some(Resource::Contact("é".into())))]
    #[case("/dav/addressbooks/contacts/%FF", None)]
    #[case("/dav/addressbooks/contacts/a%2Fb", None)]
    #[case("/dav/addressbooks/contacts/a/", None)]
    #[case("/dav/addressbooks/contacts/..", None)]
    #[case("/dav/addressbooks/contacts/%0A", None)]
    #[case("/dav/addressbooks/other/", None)]
    fn a_path_stands_for_a_resource(#[case] path: &str, #[case] resource: Option<Resource>) {
        assert_eq!(Resource::at(path), resource);
    }

    #[test]
    fn a_contact_has_one_path() {
        let contact = Resource::Contact("é+b@c ~.vcf".into());
        assert_eq!(
            contact.href(),
            "/dav/addressbooks/contacts/%C3%A9%2Bb@c%20~.vcf"
        );
        assert_eq!(Resource::at(&contact.href()), Some(contact));
    }
}
