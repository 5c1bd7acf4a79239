//! Text in a page.

/// A text as HTML, with all markup escaped.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            // Not allowed in HTML, even if escaped.
            c if c.is_control() && !matches!(c, '\n' | '\t') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// What remains of a line on a terminal: without colors and other sequences, and with the last state of a progress bar.
pub(super) fn render_terminal_line(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let text = text.trim_end_matches('\r');
    let text = text.rsplit('\r').next().unwrap_or_default();
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\u{1b}' {
            out.push(c);
            continue;
        }
        // ECMA-48: `ESC [` up to a byte of 0x40 to 0x7e, `ESC ]` up to BEL or `ESC \`, `ESC` and one character.
        match rest.next() {
            Some('[') => {
                rest.by_ref().find(|c| ('\u{40}'..='\u{7e}').contains(c));
            }
            Some(']') => {
                let mut last = ' ';
                rest.by_ref().find(|&c| {
                    let ends = c == '\u{7}' || last == '\u{1b}' && c == '\\';
                    last = c;
                    ends
                });
            }
            _ => {}
        }
    }
    out
}

/// The anchor of a task in the page.
pub(super) fn anchor(task: &jobc_sys::id::TaskId) -> String {
    format!("log-{task}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_markup() {
        assert_eq!(
            escape("<script>alert('x' & \"y\")</script>\u{1b}[0m\u{0}"),
            "&lt;script&gt;alert(&#39;x&#39; &amp; &quot;y&quot;)&lt;/script&gt;\u{fffd}[0m\u{fffd}"
        );
    }

    #[test]
    fn a_line_is_shown_as_a_terminal_would() {
        let shown = |text: &str| render_terminal_line(text.as_bytes());
        assert_eq!(shown("\u{1b}[1;31mred\u{1b}[0m"), "red");
        assert_eq!(shown("10%\r20%\r30%\r"), "30%");
        assert_eq!(shown("\u{1b}]8;;http://x\u{7}link\u{1b}]8;;\u{1b}\\!"), "link!");
        assert_eq!(shown("\u{1b}[31"), "");
        assert_eq!(shown("\u{1b}"), "");
        assert_eq!(render_terminal_line(b"\xff"), "\u{fffd}");
    }
}
