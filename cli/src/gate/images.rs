//! Which images a benchmark measures, and whether one of them is the image of a release.

use frugality_operator::api::FrugalityBenchmark;

/// An image reference in its parts, as the OCI distribution specification names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reference<'a> {
    /// Registry and name, without tag and digest.
    repository: &'a str,
    digest: Option<&'a str>,
}

impl<'a> Reference<'a> {
    fn of(text: &'a str) -> Self {
        let (name, digest) = match text.split_once('@') {
            Some((name, digest)) => (name, Some(digest)),
            None => (text, None),
        };
        // A colon before the last slash belongs to the registry's port.
        let last = name.rfind('/').map_or(0, |slash| slash + 1);
        let tag = name[last..].find(':').map(|colon| last + colon);
        Self {
            repository: &name[..tag.unwrap_or(name.len())],
            digest,
        }
    }
}

/// Whether two references name one image: equal texts, or one repository with equal digests.
#[must_use]
pub(super) fn same(one: &str, other: &str) -> bool {
    let (left, right) = (Reference::of(one), Reference::of(other));
    one == other || (left.digest.is_some() && left == right)
}

/// Whether the reference names one content for ever. A tag can be moved.
#[must_use]
pub(crate) fn is_fixed(image: &str) -> bool {
    Reference::of(image).digest.is_some()
}

/// Each image that a benchmark measures, with the name of its candidate. The images of backends are the candidate's.
pub(super) fn measured(benchmark: &FrugalityBenchmark) -> impl Iterator<Item = (&str, &str)> {
    benchmark.spec.candidates.iter().flat_map(|candidate| {
        let backends = candidate.backends.iter().map(|it| &it.server);
        std::iter::once(&candidate.server)
            .chain(backends)
            .map(|server| (candidate.name.as_str(), server.image.as_str()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "@sha256:0123";

    #[test]
    fn images_are_the_same_by_text_or_by_digest() {
        let with = |name: &str| format!("{name}{DIGEST}");
        assert!(same("you/shop:1.2", "you/shop:1.2"));
        assert!(same(&with("you/shop:1.2"), &with("you/shop")));
        assert!(same(&with("host:5000/shop:1"), &with("host:5000/shop:2")));
        assert!(!same("you/shop:1.2", "you/shop:1.3"));
        assert!(!same("you/shop", "you/shop:latest"));
        assert!(!same(&with("you/shop"), "you/shop"));
        assert!(!same(&with("you/shop"), &with("me/shop")));
        assert!(!same(&with("host:5000/shop"), &with("host:6000/shop")));
        assert!(!same("a@sha256:0123", "a@sha256:0124"));
    }

    #[test]
    fn only_a_digest_fixes_an_image() {
        assert!(is_fixed("you/shop:1.2@sha256:0123"));
        assert!(!is_fixed("you/shop:1.2"));
        assert!(!is_fixed("host:5000/shop"));
    }
}
