//! Characters that look like a space, or like nothing, and are letters to YAML and to a shell.

/// The name of a character that looks like a space, or is invisible.
pub(crate) fn name(c: char) -> Option<&'static str> {
    match c {
        '\u{a0}' => Some("no-break space"),
        '\u{2000}'..='\u{200a}' => Some("typographic space"),
        '\u{202f}' => Some("narrow no-break space"),
        '\u{205f}' => Some("mathematical space"),
        '\u{3000}' => Some("ideographic space"),
        '\u{200b}' => Some("zero-width space"),
        '\u{2060}' => Some("word joiner"),
        '\u{feff}' => Some("byte order mark"),
        _ => None,
    }
}

/// The replacement for such a character: a space, or nothing if it has no width.
pub(crate) fn instead(c: char) -> &'static str {
    if matches!(c, '\u{200b}' | '\u{2060}' | '\u{feff}') { "" } else { " " }
}
