//! Keys: the names of circuits, safe in every store, label and log line.

use crate::error::InvalidKey;

/// A valid key: segments of `a`–`z` and `0`–`9`, joined by single `.`, `_` or `-`, at most 87 bytes (the grammar of phil's
/// package; 87 leaves 13 bytes for a store's prefix below 100).
///
/// ```
/// use tripcurve::Key;
/// assert_eq!(Key::parse("http.payments").unwrap().as_str(), "http.payments");
/// assert!(Key::parse("http..payments").is_err());
/// assert!(Key::parse("https://example.com").is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Key<'a>(&'a str);

impl<'a> Key<'a> {
    /// The longest key, in bytes.
    pub const MAX_BYTES: usize = 87;

    /// The key, or what is wrong with it.
    pub fn parse(text: &'a str) -> Result<Key<'a>, InvalidKey> {
        if text.len() > Key::MAX_BYTES {
            return Err(InvalidKey::TooLong);
        }
        let mut in_segment = false;
        for (at, byte) in text.bytes().enumerate() {
            in_segment = match byte {
                b'a'..=b'z' | b'0'..=b'9' => true,
                b'.' | b'_' | b'-' if in_segment => false,
                _ => return Err(InvalidKey::Character { at }),
            };
        }
        if in_segment {
            Ok(Key(text))
        } else {
            Err(InvalidKey::Unfinished)
        }
    }

    /// The text.
    pub const fn as_str(self) -> &'a str {
        self.0
    }
}
