//! Digests as text.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

/// The first `bytes` bytes of the SHA-256 digest, in hex.
#[must_use]
pub fn hex_digest(data: &[u8], bytes: usize) -> String {
    Sha256::digest(data)
        .iter()
        .take(bytes)
        .fold(String::new(), |mut text, byte| {
            // Writing to a String can't fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_is_sha256() {
        // FIPS 180-2, appendix B.1.
        assert_eq!(hex_digest(b"abc", 4), "ba7816bf");
    }
}
