//! The parts of vCard (RFC 6350, RFC 2426) that an address book needs: lines, UID, VERSION, search.

use unicode_normalization::UnicodeNormalization;

/// Maximum length of a UID in bytes. The UID is a key of the table.
const UID_BYTES: usize = 255;

/// The reason why a body is not accepted as a contact.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum VcardFault {
    /// The body is not one valid vCard with one UID and a full name.
    Invalid,
    /// The body is a vCard of a version other than 3.0 and 4.0.
    Version,
}

/// One line of a vCard, unfolded.
pub(crate) struct Line<'a> {
    /// The property's name in its original case, without group and parameters.
    pub(crate) name: &'a str,
    /// Everything before the colon.
    pub(crate) head: &'a str,
    /// Everything after the colon, still escaped.
    pub(crate) value: &'a str,
}

impl Line<'_> {
    /// Whether the property has this name, in upper or lower case.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

/// Joins folded lines, and ends each line with a line feed only.
pub(crate) fn unfold(vcard: &str) -> String {
    vcard
        .replace("\r\n", "\n")
        .replace("\n ", "")
        .replace("\n\t", "")
}

/// The lines of an unfolded vCard that are well-formed.
pub(crate) fn lines(unfolded: &str) -> impl Iterator<Item = Line<'_>> {
    unfolded.split('\n').filter_map(line)
}

/// `[group.]name[;parameters]:value`. A colon inside quotes belongs to a parameter.
fn line(text: &str) -> Option<Line<'_>> {
    let mut quoted = false;
    let colon = text.bytes().position(|byte| {
        quoted ^= byte == b'"';
        byte == b':' && !quoted
    })?;
    let (head, value) = (&text[..colon], &text[colon + 1..]);
    let name = head.split(';').next()?;
    let name = name
        .split_once('.')
        .map_or(Some(name), |(group, name)| is_name(group).then_some(name))?;
    is_name(name).then_some(Line { name, head, value })
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// The vCard in the body of a request, and its UID without the prefix `urn:uuid:`.
pub(crate) fn identify(body: &[u8]) -> Result<(&str, String), VcardFault> {
    let vcard = std::str::from_utf8(body).map_err(|_| VcardFault::Invalid)?;
    let unfolded = unfold(vcard);
    if unfolded.chars().any(is_forbidden) {
        return Err(VcardFault::Invalid);
    }
    let lines = unfolded
        .trim_end_matches('\n')
        .split('\n')
        .map(line)
        .collect::<Option<Vec<_>>>()
        .ok_or(VcardFault::Invalid)?;
    let values = |name: &'static str| {
        lines
            .iter()
            .filter(move |line| line.is(name))
            .map(|line| line.value)
            .collect::<Vec<_>>()
    };
    let is_card = |line: Option<&Line<'_>>, name| {
        line.is_some_and(|line| {
            line.head.eq_ignore_ascii_case(name) && line.value.eq_ignore_ascii_case("VCARD")
        })
    };
    if !is_card(lines.first(), "BEGIN")
        || !is_card(lines.last(), "END")
        || values("BEGIN").len() != 1
        || values("END").len() != 1
        || values("FN").is_empty()
    {
        return Err(VcardFault::Invalid);
    }
    let [version] = values("VERSION")[..] else {
        return Err(VcardFault::Invalid);
    };
    if !matches!(version, "3.0" | "4.0") {
        return Err(VcardFault::Version);
    }
    let [uid] = values("UID")[..] else {
        return Err(VcardFault::Invalid);
    };
    let uid = unescape(uid);
    let uid = match uid.get(..9) {
        Some(prefix) if prefix.eq_ignore_ascii_case("urn:uuid:") => uid[9..].to_owned(),
        _ => uid,
    };
    if uid.is_empty() || uid.len() > UID_BYTES {
        return Err(VcardFault::Invalid);
    }
    Ok((vcard, uid))
}

/// Whether a vCard cannot contain this character: control characters except TAB and line ends, and characters
/// that XML cannot contain.
fn is_forbidden(character: char) -> bool {
    matches!(character, '\0'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}' | '\u{fffe}' | '\u{ffff}')
}

/// The text of a value without its escapes (RFC 6350, 3.4).
pub(crate) fn unescape(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some('n' | 'N') => text.push('\n'),
                Some(other) => text.push(other),
                None => text.push('\\'),
            },
            other => text.push(other),
        }
    }
    text
}

/// The collation of a comparison (RFC 6352, 8.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Collation {
    /// `i;ascii-casemap`
    Ascii,
    /// `i;unicode-casemap` (RFC 5051), with upper case instead of title case. The two differ in four digraphs and
    /// in Georgian.
    Unicode,
}

impl Collation {
    /// The mapped text, which the matches compare.
    pub(crate) fn fold(self, text: &str) -> String {
        match self {
            Self::Ascii => text.to_ascii_uppercase(),
            Self::Unicode => text.chars().map(simple_upper).nfkd().collect(),
        }
    }
}

/// The upper case if it is one character, as in Unicode's simple mappings.
fn simple_upper(character: char) -> char {
    let mut upper = character.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(one), None) => one,
        _ => character,
    }
}

/// A vCard, unfolded, with BEGIN, END and the named properties only, in their order.
pub(crate) fn only(vcard: &str, properties: &[String]) -> String {
    let unfolded = unfold(vcard);
    let mut partial = String::new();
    for line in lines(&unfolded) {
        if line.is("BEGIN") || line.is("END") || properties.iter().any(|name| line.is(name)) {
            partial.push_str(line.head);
            partial.push(':');
            partial.push_str(line.value);
            partial.push_str("\r\n");
        }
    }
    partial
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const CARD: &str = "BEGIN:VCARD\r\nVERSION:3.0\r\nUID:a1\r\nFN:Zoë\r\nEND:VCARD\r\n";

    #[rstest]
    #[case::plain("UID:a1", "a1")]
    #[case::urn("UID:urn:uuid:a1", "a1")]
    #[case::urn_in_capitals("UID:URN:UUID:a1", "a1")]
    #[case::folded("UI\r\n D:a\r\n\t1", "a1")]
    #[case::parameters("uid;X=\"a:b\";VALUE=text:a1", "a1")]
    #[case::group("item1.UID:a1", "a1")]
    #[case::escaped("UID:a\\,1", "a,1")]
    fn the_uid_is_found(#[case] line: &str, #[case] uid: &str) {
        let card = CARD.replace("UID:a1", line);
        assert_eq!(identify(card.as_bytes()), Ok((card.as_str(), uid.into())));
        let bare = card.replace("\r\n", "\n");
        assert_eq!(
            identify(bare.trim_end().as_bytes()),
            Ok((bare.trim_end(), uid.into()))
        );
    }

    #[rstest]
    #[case::no_uid("UID:a1", "NOTE:a1")]
    #[case::empty_uid("UID:a1", "UID:")]
    #[case::only_a_prefix("UID:a1", "UID:urn:uuid:")]
    #[case::two_uids("UID:a1", "UID:a1\r\nUID:a2")]
    #[case::no_full_name("FN:", "NOTE:")]
    #[case::no_version("VERSION:", "NOTE:")]
    #[case::two_versions("UID:a1", "UID:a1\r\nVERSION:3.0")]
    #[case::no_end("END:VCARD", "NOTE:end")]
    #[case::two_cards("UID:a1", "UID:a1\r\nEND:VCARD\r\nBEGIN:VCARD")]
    #[case::not_at_the_begin("BEGIN", "X:1\r\nBEGIN")]
    #[case::no_colon("UID:a1", "UID:a1\r\nnothing")]
    #[case::empty_line("UID:a1", "UID:a1\r\n")]
    #[case::open_quote("UID:a1", "UID:a1\r\nX;Y=\":z")]
    #[case::control_character("FN:", "FN:\u{1}")]
    #[case::carriage_return("FN:", "FN:\r")]
    fn what_is_no_contact_is_refused(#[case] from: &str, #[case] to: &str) {
        let card = CARD.replace(from, to);
        assert_eq!(identify(card.as_bytes()), Err(VcardFault::Invalid));
    }

    #[test]
    fn other_versions_and_encodings_are_refused() {
        let old = CARD.replace("3.0", "2.1");
        assert_eq!(identify(old.as_bytes()), Err(VcardFault::Version));
        assert_eq!(identify(b"BEGIN:VCARD\xff"), Err(VcardFault::Invalid));
    }

    #[rstest]
    #[case::case("zoë", "ZOË", true)]
    #[case::composed("Zoe\u{308}", "zoë", true)]
    #[case::compatible("ﬁn", "fin", false)]
    #[case::ligature("ﬁN", "ﬁn", true)]
    #[case::sharp_s("straße", "STRASSE", false)]
    fn unicode_casemap(#[case] left: &str, #[case] right: &str, #[case] equal: bool) {
        let fold = |text| Collation::Unicode.fold(text);
        assert_eq!(fold(left) == fold(right), equal);
    }

    #[test]
    fn only_some_properties() {
        assert_eq!(
            only(CARD, &["fn".into()]),
            "BEGIN:VCARD\r\nFN:Zoë\r\nEND:VCARD\r\n"
        );
    }
}
