//! XML in and out: the bodies of requests as a small tree, and the escaping of text.

use quick_xml::XmlVersion;
use quick_xml::escape::unescape;
use quick_xml::events::attributes::Attributes;
use quick_xml::events::{BytesDecl, BytesRef, BytesStart, Event};
use quick_xml::name::{Namespace, ResolveResult};
use quick_xml::reader::NsReader;

/// Namespace of WebDAV (RFC 4918).
pub(crate) const DAV: &str = "DAV:";
/// Namespace of CardDAV (RFC 6352).
pub(crate) const CARDDAV: &str = "urn:ietf:params:xml:ns:carddav";
/// Namespace of the collection tag, which calendar and address book clients use.
pub(crate) const CALENDARSERVER: &str = "http://calendarserver.org/ns/";

/// Maximum depth of nested elements. No request needs more than six.
const DEPTH: usize = 32;

/// The name of an element or of a property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    /// The namespace; empty for a name without one.
    pub(crate) namespace: String,
    /// The name without a prefix.
    pub(crate) local: String,
}

impl Name {
    /// Whether this is `local` in `namespace`.
    pub(crate) fn is(&self, namespace: &str, local: &str) -> bool {
        self.namespace == namespace && self.local == local
    }

    /// This name as an empty element in an answer; it declares its namespace if the answer's root does not.
    pub(crate) fn empty_element(&self) -> String {
        let local = &self.local;
        match self.namespace.as_str() {
            "" => format!("<{local}/>"),
            DAV => format!("<D:{local}/>"),
            CARDDAV => format!("<C:{local}/>"),
            CALENDARSERVER => format!("<S:{local}/>"),
            other => format!("<{local} xmlns=\"{}\"/>", escape(other)),
        }
    }
}

/// An element in the body of a request.
#[derive(Debug)]
pub(crate) struct Element {
    pub(crate) name: Name,
    /// The attributes without a namespace.
    attributes: Vec<(String, String)>,
    /// All character data directly in this element.
    pub(crate) text: String,
    pub(crate) children: Vec<Element>,
}

impl Element {
    /// The value of an attribute without a namespace.
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// The first child with this name.
    pub(crate) fn child(&self, namespace: &str, local: &str) -> Option<&Self> {
        self.children_named(namespace, local).next()
    }

    /// All children with this name.
    pub(crate) fn children_named(
        &self,
        namespace: &str,
        local: &str,
    ) -> impl Iterator<Item = &Self> {
        self.children
            .iter()
            .filter(move |child| child.name.is(namespace, local))
    }
}

/// The root of a well-formed document in UTF-8; `None` for anything else.
/// A document type is refused, because entities could then be expanded.
pub(crate) fn parse(body: &[u8]) -> Option<Element> {
    let text = std::str::from_utf8(body).ok()?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if !text.chars().all(is_character) {
        return None;
    }
    let mut reader = NsReader::from_str(text);
    let config = reader.config_mut();
    config.expand_empty_elements = true;
    config.check_comments = true;

    let mut root = None;
    let mut open: Vec<Element> = Vec::new();
    let mut at_start = true;
    loop {
        let (namespace, event) = reader.read_resolved_event().ok()?;
        match event {
            Event::Start(start) => {
                if root.is_some() || open.len() == DEPTH {
                    return None;
                }
                let namespace = match namespace {
                    // The reader compares and returns namespaces without resolving their escapes.
                    ResolveResult::Bound(Namespace(namespace)) => {
                        unescape(namespace).ok()?.into_owned()
                    }
                    ResolveResult::Unbound => String::new(),
                    ResolveResult::Unknown(_) => return None,
                };
                if !is_name(start.name().as_ref()) {
                    return None;
                }
                let local = start.local_name().as_ref().to_owned();
                let attributes = attributes(&reader, &start)?;
                open.push(Element {
                    name: Name { namespace, local },
                    attributes,
                    text: String::new(),
                    children: Vec::new(),
                });
            }
            Event::End(_) => {
                let element = open.pop()?;
                match open.last_mut() {
                    Some(parent) => parent.children.push(element),
                    None => root = Some(element),
                }
            }
            Event::Text(text) => {
                let text = text.xml10_content();
                if text.contains("]]>") {
                    return None;
                }
                match open.last_mut() {
                    Some(element) => element.text.push_str(&text),
                    None if text.chars().all(|c| matches!(c, ' ' | '\t' | '\n')) => (),
                    None => return None,
                }
            }
            Event::CData(text) => open.last_mut()?.text.push_str(&text.xml10_content()),
            Event::GeneralRef(reference) => {
                open.last_mut()?.text.push(referenced(&reference)?);
            }
            Event::Decl(declaration) if at_start && is_declaration(&declaration) => (),
            Event::PI(instruction) if is_target(instruction.target()) => (),
            Event::Comment(_) => (),
            Event::Eof if open.is_empty() => return root,
            Event::Eof | Event::DocType(_) | Event::Decl(_) | Event::PI(_) | Event::Empty(_) => {
                return None;
            }
        }
        at_start = false;
    }
}

/// The attributes without a namespace. The reader accepts more than XML allows, so this function checks the rest.
fn attributes(reader: &NsReader<&[u8]>, start: &BytesStart<'_>) -> Option<Vec<(String, String)>> {
    let mut attributes = Vec::new();
    if !are_apart(start.attributes_raw()) {
        return None;
    }
    for attribute in start.attributes() {
        let attribute = attribute.ok()?;
        let value = attribute.normalized_value(XmlVersion::Explicit1_0).ok()?;
        let name = attribute.key.as_ref();
        if attribute.value.contains('<') || !value.chars().all(is_character) || !is_name(name) {
            return None;
        }
        // A prefix cannot be undeclared, and no namespace contains a space.
        if (name.starts_with("xmlns:") && value.is_empty())
            || ((name == "xmlns" || name.starts_with("xmlns:")) && value.contains(' '))
        {
            return None;
        }
        match reader.resolver().resolve_attribute(attribute.key) {
            (ResolveResult::Unknown(_), _) => return None,
            (ResolveResult::Unbound, name) if name.as_ref() != "xmlns" => {
                attributes.push((name.as_ref().to_owned(), value.into_owned()));
            }
            _ => (),
        }
    }
    Some(attributes)
}

/// The character of a reference such as `&amp;` or `&#13;`.
fn referenced(reference: &BytesRef<'_>) -> Option<char> {
    if reference.is_char_ref() {
        return reference
            .resolve_char_ref()
            .ok()
            .flatten()
            .filter(|character| is_character(*character));
    }
    match reference.xml10_content().as_ref() {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => None,
    }
}

/// Whether XML 1.0 can contain this character.
pub(crate) fn is_character(character: char) -> bool {
    match character {
        '\t' | '\n' | '\r' => true,
        '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => false,
        _ => true,
    }
}

/// Whether this is a name with at most one prefix.
fn is_name(name: &str) -> bool {
    let is_part = |part: &str| {
        part.starts_with(|c: char| c == '_' || c.is_alphabetic())
            && part
                .chars()
                .all(|c| matches!(c, '_' | '-' | '.' | '\u{b7}') || c.is_alphanumeric())
    };
    match name.split_once(':') {
        Some((prefix, local)) => is_part(prefix) && is_part(local),
        None => is_part(name),
    }
}

/// Whether this can be the name of a processing instruction.
fn is_target(target: &str) -> bool {
    is_name(target) && !target.contains(':') && !target.eq_ignore_ascii_case("xml")
}

/// Whether each quoted value is followed by a space or by the end.
fn are_apart(attributes: &str) -> bool {
    let mut quote = None;
    let mut closed = false;
    for character in attributes.chars() {
        if closed && !character.is_ascii_whitespace() {
            return false;
        }
        closed = quote == Some(character);
        if closed {
            quote = None;
        } else if quote.is_none() && matches!(character, '"' | '\'') {
            quote = Some(character);
        }
    }
    true
}

/// Whether a declaration has a version, then optionally an encoding, then optionally `standalone`, and no more.
/// The encoding is ignored, because only UTF-8 is read.
fn is_declaration(declaration: &BytesDecl<'_>) -> bool {
    let content: &str = declaration;
    let mut allowed = ["version", "encoding", "standalone"].into_iter();
    let in_order = Attributes::new(content, "xml".len()).all(|attribute| {
        attribute.is_ok_and(|attribute| allowed.any(|name| name == attribute.key.as_ref()))
    });
    let is_word = |word: &str| {
        !word.is_empty()
            && word
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
    };
    let encoding = declaration.encoding();
    in_order
        && are_apart(content)
        && declaration.version().is_ok_and(|version| is_word(&version))
        && encoding.is_none_or(|encoding| {
            encoding.is_ok_and(|encoding| {
                is_word(&encoding) && encoding.starts_with(|c: char| c.is_ascii_alphabetic())
            })
        })
        && declaration.standalone().is_none_or(|standalone| {
            standalone.is_ok_and(|standalone| matches!(standalone.as_ref(), "yes" | "no"))
        })
}

/// Text escaped for use between tags and between quotes. A carriage return is escaped, because a parser would turn
/// it into a line feed.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + text.len() / 8);
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\r' => escaped.push_str("&#13;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[test]
    fn a_tree_has_names_attributes_and_text() {
        let body = br#"<?xml version="1.0"?><a:q xmlns:a="DAV:" xmlns="x&amp;"><b c="1&amp;2">t&lt;<![CDATA[&]]>&#65;</b></a:q>"#;
        let root = parse(body).unwrap();
        assert!(root.name.is(DAV, "q"));
        let child = root.child("x&", "b").unwrap();
        assert_eq!(child.attribute("c"), Some("1&2"));
        assert_eq!(child.text, "t<&A");
        assert_eq!(child.name.empty_element(), "<b xmlns=\"x&amp;\"/>");
    }

    #[rstest]
    #[case::nothing("")]
    #[case::text("text")]
    #[case::two_roots("<a/><b/>")]
    #[case::text_after_the_root("<a/>b")]
    #[case::open("<a>")]
    #[case::crossed("<a><b></a></b>")]
    #[case::prefix("<a:b/>")]
    #[case::prefix_of_an_attribute("<a b:c=''/>")]
    #[case::attribute_twice("<a b='' b=''/>")]
    #[case::document_type("<!DOCTYPE a><a/>")]
    #[case::entity("<a>&b;</a>")]
    #[case::entity_in_an_attribute("<a b='&c;'/>")]
    #[case::control_character("<a>\u{1}</a>")]
    #[case::control_character_by_number("<a>&#1;</a>")]
    #[case::late_declaration(" <?xml version='1.0'?><a/>")]
    #[case::name("<1/>")]
    #[case::name_of_an_attribute("<a 1=''/>")]
    #[case::attributes_together("<a b=''c=''/>")]
    #[case::prefix_taken_back("<a xmlns:b=''/>")]
    #[case::space_in_a_namespace("<a xmlns='b c'/>")]
    #[case::declaration("<?xml ver='1.0'?><a/>")]
    #[case::declaration_of_more("<?xml version='1.0' a='b'?><a/>")]
    #[case::instruction("<?a=b c?><a/>")]
    #[case::end_of_character_data("<a>]]></a>")]
    #[case::encoding("<?xml version='1.0' encoding='a b'?><a/>")]
    fn what_is_not_well_formed_is_refused(#[case] body: &str) {
        assert!(parse(body.as_bytes()).is_none());
    }

    #[test]
    fn a_bomb_of_depth_is_refused() {
        let nested = |depth| "<a>".repeat(depth) + &"</a>".repeat(depth);
        assert!(parse(nested(DEPTH).as_bytes()).is_some());
        assert!(parse(nested(DEPTH + 1).as_bytes()).is_none());
    }
}
