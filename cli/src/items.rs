//! The objects in the text that kubectl get -o json prints: the items of a list, or one object. They are read one at a
//! time. A ledger may have thousands of entries, and as a [`serde_json::Value`] each would take ten times its text.

use std::{collections::BTreeMap, fmt, io::Read};

use serde::{
    Deserialize,
    de::{
        DeserializeOwned, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor,
    },
};
use serde_json::value::RawValue;

/// The text of one object.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a>(&'a str);

#[derive(Default, Deserialize)]
struct Kind {
    kind: Option<String>,
}

#[derive(Default, Deserialize)]
struct Named {
    metadata: Option<Metadata>,
}

#[derive(Default, Deserialize)]
struct Metadata {
    name: Option<String>,
}

impl Item<'_> {
    /// The object as this type.
    pub fn parse<T: DeserializeOwned>(self) -> serde_json::Result<T> {
        // The line and column of an error in this text are those of no file. An error of a value has none.
        serde_json::from_str(self.0)
            .or_else(|_| serde_json::from_value(serde_json::from_str(self.0)?))
    }

    /// Kind of the object, or nothing.
    #[must_use]
    pub fn kind(self) -> String {
        let kind: Kind = self.parse().unwrap_or_default();
        kind.kind.unwrap_or_default()
    }

    /// Name of the object, for messages.
    #[must_use]
    pub fn name(self) -> String {
        let named: Named = self.parse().unwrap_or_default();
        let name = named.metadata.and_then(|it| it.name);
        name.unwrap_or_else(|| "without a name".to_owned())
    }
}

/// Calls `each` with the items of a list, or with the one object. The first error ends the reading.
pub fn for_each_item<E: From<serde_json::Error>>(
    input: impl Read,
    mut each: impl FnMut(Item<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut failure = None;
    let mut text = serde_json::Deserializer::from_reader(input);
    let read = text
        .deserialize_map(Document(Items {
            each: &mut each,
            failure: &mut failure,
        }))
        .and_then(|object| text.end().map(|()| object));
    if let Some(failure) = failure {
        return Err(failure);
    }
    match read? {
        Some(fields) => each(Item(&serde_json::to_string(&fields)?)),
        None => Ok(()),
    }
}

/// What `read` finds in the items of a list, or in the one object. The first error ends the reading.
pub fn collect_items<T, E: From<serde_json::Error>>(
    input: impl Read,
    read: impl Fn(Item<'_>) -> Result<Option<T>, E>,
) -> Result<Vec<T>, E> {
    let mut found = Vec::new();
    for_each_item(input, |item| -> Result<(), E> {
        found.extend(read(item)?);
        Ok(())
    })?;
    Ok(found)
}

/// The items of a list. `failure` has the error of `each`, which serde's errors can't hold.
struct Items<'a, F, E> {
    each: &'a mut F,
    failure: &'a mut Option<E>,
}

impl<'de, F, E> DeserializeSeed<'de> for Items<'_, F, E>
where
    F: FnMut(Item<'_>) -> Result<(), E>,
{
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, F, E> Visitor<'de> for Items<'_, F, E>
where
    F: FnMut(Item<'_>) -> Result<(), E>,
{
    type Value = ();

    fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str("the items of a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element::<Box<RawValue>>()? {
            (self.each)(Item(item.get())).map_err(|error| {
                *self.failure = Some(error);
                A::Error::custom("an item can't be read")
            })?;
        }
        Ok(())
    }
}

/// A list, or the fields of another object.
struct Document<'a, F, E>(Items<'a, F, E>);

impl<'de, F, E> Visitor<'de> for Document<'_, F, E>
where
    F: FnMut(Item<'_>) -> Result<(), E>,
{
    type Value = Option<BTreeMap<String, Box<RawValue>>>;

    fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str("a list or an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        let Self(Items { each, failure }) = self;
        let mut fields = BTreeMap::new();
        let mut is_list = false;
        while let Some(name) = object.next_key::<String>()? {
            if name == "items" {
                is_list = true;
                object.next_value_seed(Items {
                    each: &mut *each,
                    failure: &mut *failure,
                })?;
            } else {
                fields.insert(name, object.next_value()?);
            }
        }
        Ok((!is_list).then_some(fields))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use std::{cell::Cell, rc::Rc};

    use super::*;

    fn names(text: &str) -> serde_json::Result<Vec<(String, String)>> {
        let mut names = Vec::new();
        for_each_item(text.as_bytes(), |item| {
            names.push((item.kind(), item.name()));
            serde_json::Result::Ok(())
        })?;
        Ok(names)
    }

    /// A text, and the number of bytes that were read.
    struct Counted<'a>(&'a [u8], Rc<Cell<usize>>);

    impl Read for Counted<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let read = self.0.read(buffer)?;
            self.1.set(self.1.get() + read);
            Ok(read)
        }
    }

    #[test]
    fn a_list_has_items_and_an_object_is_one() {
        let one = r#"{"kind": "A", "metadata": {"name": "a", "labels": {"items": "1"}}, "spec": {"items": [1]}}"#;
        let named = |kind: &str, name: &str| (kind.to_owned(), name.to_owned());
        assert_eq!(names(one).unwrap(), [named("A", "a")]);
        let list = format!(
            r#"{{"items": [{one}, {{"kind": 1}}], "kind": "List", "metadata": {{"name": "l"}}}}"#
        );
        let expected = [named("A", "a"), named("", "without a name")];
        assert_eq!(names(&list).unwrap(), expected);
        assert_eq!(names(r#"{"items": []}"#).unwrap(), []);
        for nonsense in [
            "",
            "no JSON",
            "[]",
            r#"{"items": null}"#,
            "{} {}",
            one.split_at(9).0,
        ] {
            assert!(names(nonsense).is_err(), "{nonsense}");
        }
    }

    #[test]
    fn each_item_is_read_before_the_text_of_the_next() {
        let item = r#"{"kind": "A"}"#;
        let text = format!(r#"{{"items": [{item},{item},{item}]}}"#);
        let read = Rc::new(Cell::new(0));
        let mut ends = Vec::new();
        for_each_item(Counted(text.as_bytes(), Rc::clone(&read)), |_| {
            ends.push(read.get());
            serde_json::Result::Ok(())
        })
        .unwrap();
        let first = r#"{"items": ["#.len() + item.len();
        let of_each = item.len() + 1;
        assert_eq!(ends, [first, first + of_each, first + 2 * of_each]);
    }
}
