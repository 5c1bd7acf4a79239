//! Full-width digits and letters of Chinese and Japanese input methods: `４GiB`.

/// How far the full-width forms U+FF01 to U+FF5E are from the ASCII that they look like.
const DISTANCE: u32 = 0xfee0;

/// A text in ASCII, if all that is not ASCII is full-width.
pub(crate) fn in_ascii(text: &str) -> Option<String> {
    let ascii = |c: char| match c {
        '！'..='～' => char::from_u32(u32::from(c) - DISTANCE),
        c => c.is_ascii().then_some(c),
    };
    (!text.is_ascii()).then(|| text.chars().map(ascii).collect())?
}

/// What is wrong with such a text.
pub(crate) const NOTE: &str = "these characters are full-width; write them in ASCII";
