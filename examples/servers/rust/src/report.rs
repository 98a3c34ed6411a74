//! The two reports of an address book (RFC 6352, 8.6 and 8.7): their bodies, and the contacts that a query matches.

use axum::http::StatusCode;

use crate::dav::Fault;
use crate::properties::{AddressData, Wanted};
use crate::vcard::{self, Collation};
use crate::xml::{CARDDAV, DAV, Element, escape};

const NOT_UNDERSTOOD: Fault = Fault::Plain(
    StatusCode::BAD_REQUEST,
    "The body of a REPORT is an addressbook-multiget or an addressbook-query of RFC 6352\n",
);

/// A parsed report.
#[derive(Debug)]
pub(crate) struct Report {
    /// The properties of each contact.
    pub(crate) wanted: Wanted,
    /// The form of the vCards; `None` if the answer has no vCards.
    pub(crate) data: Option<AddressData>,
    /// The contacts.
    pub(crate) scope: Scope,
}

/// The contacts that a report selects.
#[derive(Debug)]
pub(crate) enum Scope {
    /// The contacts at these paths or URLs.
    These(Vec<String>),
    /// The contacts that match, up to a limit.
    Matching(Filter, Option<usize>),
}

impl Report {
    /// Reads the body of a REPORT.
    pub(crate) fn of(root: &Element) -> Result<Self, Fault> {
        let mut wanted = Wanted::of(root).unwrap_or_else(|| Wanted::These(Vec::new()));
        let data = root
            .child(DAV, "prop")
            .and_then(|prop| prop.child(CARDDAV, "address-data"))
            .map(address_data)
            .transpose()?;
        if let Wanted::These(names) = &mut wanted {
            names.retain(|name| !name.is(CARDDAV, "address-data"));
        }
        let scope = if root.name.is(CARDDAV, "addressbook-multiget") {
            let mut hrefs: Vec<String> = Vec::new();
            for href in root.children_named(DAV, "href") {
                hrefs.push(href.text.trim_matches([' ', '\t', '\r', '\n']).to_owned());
            }
            if hrefs.is_empty() {
                return Err(NOT_UNDERSTOOD);
            }
            Scope::These(hrefs)
        } else if root.name.is(CARDDAV, "addressbook-query") {
            let filter = Filter::of(root.child(CARDDAV, "filter").ok_or(NOT_UNDERSTOOD)?)?;
            Scope::Matching(filter, limit(root)?)
        } else {
            return Err(Fault::Condition(
                StatusCode::FORBIDDEN,
                "<D:supported-report/>".to_owned(),
            ));
        };
        Ok(Self {
            wanted,
            data,
            scope,
        })
    }
}

fn address_data(element: &Element) -> Result<AddressData, Fault> {
    let version = element.attribute("version");
    let known = element
        .attribute("content-type")
        .is_none_or(|content_type| content_type.eq_ignore_ascii_case("text/vcard"))
        && version.is_none_or(|version| matches!(version, "3.0" | "4.0"));
    if !known {
        return Err(Fault::Condition(
            StatusCode::FORBIDDEN,
            "<C:supported-address-data/>".to_owned(),
        ));
    }
    Ok(AddressData {
        version: version.map(str::to_owned),
        properties: element
            .children_named(CARDDAV, "prop")
            .filter_map(|prop| prop.attribute("name"))
            .map(str::to_owned)
            .collect(),
    })
}

/// `limit`, at least 1.
fn limit(root: &Element) -> Result<Option<usize>, Fault> {
    let Some(limit) = root.child(CARDDAV, "limit") else {
        return Ok(None);
    };
    let number = limit.child(CARDDAV, "nresults").ok_or(NOT_UNDERSTOOD)?;
    let digits = number.text.trim_matches([' ', '\t', '\r', '\n']);
    if digits.is_empty() || digits.len() > 9 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(NOT_UNDERSTOOD);
    }
    match digits.parse() {
        Ok(number) if number > 0 => Ok(Some(number)),
        _ => Err(NOT_UNDERSTOOD),
    }
}

/// The condition of a query on properties (RFC 6352, 10.5); conditions on parameters are refused.
#[derive(Debug)]
pub(crate) struct Filter {
    all: bool,
    properties: Vec<PropertyFilter>,
}

#[derive(Debug)]
struct PropertyFilter {
    name: String,
    all: bool,
    absent: bool,
    matches: Vec<TextMatch>,
}

#[derive(Debug)]
struct TextMatch {
    collation: Collation,
    /// The text, mapped by the collation.
    text: String,
    kind: MatchKind,
    negate: bool,
}

#[derive(Debug)]
enum MatchKind {
    Equals,
    Contains,
    StartsWith,
    EndsWith,
}

impl Filter {
    fn of(element: &Element) -> Result<Self, Fault> {
        Ok(Self {
            all: test_all(element)?,
            properties: element
                .children_named(CARDDAV, "prop-filter")
                .map(PropertyFilter::of)
                .collect::<Result<_, _>>()?,
        })
    }

    /// Whether a contact matches; a filter without conditions matches every contact.
    pub(crate) fn matches(&self, card: &str) -> bool {
        if self.properties.is_empty() {
            return true;
        }
        let unfolded = vcard::unfold(card);
        let mut results = self
            .properties
            .iter()
            .map(|property| property.matches(&unfolded));
        if self.all {
            results.all(|result| result)
        } else {
            results.any(|result| result)
        }
    }
}

impl PropertyFilter {
    fn of(element: &Element) -> Result<Self, Fault> {
        if let Some(parameter) = element.child(CARDDAV, "param-filter") {
            let name = parameter.attribute("name").unwrap_or_default();
            return Err(Fault::Condition(
                StatusCode::FORBIDDEN,
                format!(
                    "<C:supported-filter><C:param-filter name=\"{}\"/></C:supported-filter>",
                    escape(name)
                ),
            ));
        }
        Ok(Self {
            name: element.attribute("name").ok_or(NOT_UNDERSTOOD)?.to_owned(),
            all: test_all(element)?,
            absent: element.child(CARDDAV, "is-not-defined").is_some(),
            matches: element
                .children_named(CARDDAV, "text-match")
                .map(TextMatch::of)
                .collect::<Result<_, _>>()?,
        })
    }

    fn matches(&self, unfolded: &str) -> bool {
        let mut values = vcard::lines(unfolded)
            .filter(|line| line.is(&self.name))
            .map(|line| vcard::unescape(line.value));
        if self.absent {
            return values.next().is_none();
        }
        if self.matches.is_empty() {
            return values.next().is_some();
        }
        values.any(|value| {
            let mut results = self.matches.iter().map(|one| one.matches(&value));
            if self.all {
                results.all(|result| result)
            } else {
                results.any(|result| result)
            }
        })
    }
}

impl TextMatch {
    fn of(element: &Element) -> Result<Self, Fault> {
        let collation = match element.attribute("collation") {
            None | Some("default" | "i;unicode-casemap") => Collation::Unicode,
            Some("i;ascii-casemap") => Collation::Ascii,
            Some(_) => {
                return Err(Fault::Condition(
                    StatusCode::FORBIDDEN,
                    "<C:supported-collation/>".to_owned(),
                ));
            }
        };
        Ok(Self {
            collation,
            text: collation.fold(&element.text),
            kind: match element.attribute("match-type") {
                Some("equals") => MatchKind::Equals,
                None | Some("contains") => MatchKind::Contains,
                Some("starts-with") => MatchKind::StartsWith,
                Some("ends-with") => MatchKind::EndsWith,
                Some(_) => return Err(NOT_UNDERSTOOD),
            },
            negate: match element.attribute("negate-condition") {
                None | Some("no") => false,
                Some("yes") => true,
                Some(_) => return Err(NOT_UNDERSTOOD),
            },
        })
    }

    fn matches(&self, value: &str) -> bool {
        let value = self.collation.fold(value);
        let matches = match self.kind {
            MatchKind::Equals => value == self.text,
            MatchKind::Contains => value.contains(&self.text),
            MatchKind::StartsWith => value.starts_with(&self.text),
            MatchKind::EndsWith => value.ends_with(&self.text),
        };
        matches != self.negate
    }
}

/// The attribute `test`: whether all conditions must hold, or any.
fn test_all(element: &Element) -> Result<bool, Fault> {
    match element.attribute("test") {
        None | Some("anyof") => Ok(false),
        Some("allof") => Ok(true),
        Some(_) => Err(NOT_UNDERSTOOD),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xml;
    use rstest::rstest;

    const CARD: &str = "BEGIN:VCARD\r\nVERSION:3.0\r\nUID:a1\r\nFN:Zoë Mül\r\n ler\r\n\
        EMAIL:zoe@example.org\r\nitem1.EMAIL;TYPE=WORK:z@example.com\r\nORG:A\\;B\\, C\r\nEND:VCARD\r\n";

    fn filter(inner: &str) -> Result<Filter, Fault> {
        let body = format!("<filter xmlns=\"{CARDDAV}\"{inner}</filter>");
        Filter::of(&xml::parse(body.as_bytes()).unwrap())
    }

    #[rstest]
    #[case::nothing_asked(">", true)]
    #[case::defined("><prop-filter name='fn'/>", true)]
    #[case::not_defined("><prop-filter name='NOTE'/>", false)]
    #[case::absent("><prop-filter name='NOTE'><is-not-defined/></prop-filter>", true)]
    #[case::not_absent("><prop-filter name='FN'><is-not-defined/></prop-filter>", false)]
    #[case::folded(
        "><prop-filter name='FN'><text-match>müller</text-match></prop-filter>",
        true
    )]
    #[case::ascii(
        "><prop-filter name='FN'><text-match collation='i;ascii-casemap'>MÜLLER</text-match></prop-filter>",
        false
    )]
    #[case::equals(
        "><prop-filter name='FN'><text-match match-type='equals'>zoë MÜLLER</text-match></prop-filter>",
        true
    )]
    #[case::equals_part(
        "><prop-filter name='FN'><text-match match-type='equals'>zoë</text-match></prop-filter>",
        false
    )]
    #[case::starts(
        "><prop-filter name='FN'><text-match match-type='starts-with'>zo</text-match></prop-filter>",
        true
    )]
    #[case::ends(
        "><prop-filter name='FN'><text-match match-type='ends-with'>zo</text-match></prop-filter>",
        false
    )]
    #[case::second_value(
        "><prop-filter name='EMAIL'><text-match>.com</text-match></prop-filter>",
        true
    )]
    #[case::both_in_one_value(
        " test='anyof'><prop-filter name='EMAIL' test='allof'><text-match>.com</text-match><text-match>zoe</text-match></prop-filter>",
        false
    )]
    #[case::negated(
        "><prop-filter name='UID'><text-match negate-condition='yes'>b</text-match></prop-filter>",
        true
    )]
    #[case::negated_without_the_property(
        "><prop-filter name='NOTE'><text-match negate-condition='yes'>b</text-match></prop-filter>",
        false
    )]
    #[case::escaped(
        "><prop-filter name='ORG'><text-match>a;b, c</text-match></prop-filter>",
        true
    )]
    #[case::any("><prop-filter name='NOTE'/><prop-filter name='FN'/>", true)]
    #[case::all(
        " test='allof'><prop-filter name='NOTE'/><prop-filter name='FN'/>",
        false
    )]
    fn a_filter_matches(#[case] inner: &str, #[case] matches: bool) {
        assert_eq!(filter(inner).unwrap().matches(CARD), matches);
    }

    #[rstest]
    #[case("><prop-filter/>")]
    #[case(" test='some'>")]
    #[case("><prop-filter name='FN'><text-match match-type='like'/></prop-filter>")]
    #[case("><prop-filter name='FN'><text-match collation='i;octet'/></prop-filter>")]
    #[case("><prop-filter name='FN'><param-filter name='TYPE'/></prop-filter>")]
    fn what_cannot_be_asked_is_refused(#[case] inner: &str) {
        assert!(filter(inner).is_err());
    }
}
