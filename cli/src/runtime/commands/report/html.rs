//! Text in a page.

use jobc_place::time::Time;

use crate::runtime::local_time::Zone;

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
    anstream::adapter::strip_str(text).to_string()
}

/// A cell of a table: its content as HTML, and whether it is a number, which is not wrapped.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    html: String,
    is_number: bool,
}

impl Cell {
    /// Text.
    pub(super) fn text(text: &str) -> Self {
        Self { html: escape(text), is_number: false }
    }

    /// A number with its unit.
    pub(super) fn number(text: &str) -> Self {
        Self { html: escape(text), is_number: true }
    }

    /// Content that is HTML.
    pub(super) fn html(html: String) -> Self {
        Self { html, is_number: false }
    }

    /// The same, not wrapped.
    pub(super) fn number_html(html: String) -> Self {
        Self { html, is_number: true }
    }
}

/// A table in a region that scrolls, with its name for screen readers. The first cell of a row is its heading; columns
/// without content are left out.
pub(super) fn table(name: &str, headings: &[&str], rows: &[Vec<Cell>]) -> String {
    let columns: Vec<usize> = (0..headings.len())
        .filter(|&column| column == 0 || rows.iter().any(|row| !row[column].html.is_empty()))
        .collect();
    let mut out =
        format!("<div class=\"wide\" role=\"region\" aria-label=\"{}\" tabindex=\"0\">", escape(name));
    out += "<table>\n<thead><tr>";
    out.extend(columns.iter().map(|&column| format!("<th scope=\"col\">{}</th>", escape(headings[column]))));
    out += "</tr></thead>\n<tbody>\n";
    for row in rows {
        out += "<tr>";
        for &column in &columns {
            let Cell { html, is_number } = &row[column];
            let class = if *is_number { " class=\"n\"" } else { "" };
            out += &match column {
                0 => format!("<th scope=\"row\"{class}>{html}</th>"),
                _ => format!("<td{class}>{html}</td>"),
            };
        }
        out += "</tr>\n";
    }
    out + "</tbody></table></div>\n"
}

/// A sentence about what a table leaves out; empty if that is nothing.
pub(super) fn not_shown(count: usize, what: &str) -> String {
    match count {
        0 => String::new(),
        _ => format!("<p class=\"none\">{count} more {what} are not shown.</p>\n"),
    }
}

/// A moment in the local time zone.
pub(super) fn moment(time: Time, zone: &Zone) -> String {
    format!("<time datetime=\"{time}\">{}</time>", zone.date_and_time(time))
}

/// A text with names in backticks as code.
pub(super) fn format_backticks(text: &str) -> String {
    let mut out = String::new();
    let parts: Vec<&str> = text.split('`').collect();
    let is_paired = parts.len() % 2 == 1;
    for (index, part) in parts.iter().enumerate() {
        let part = escape(part);
        out += &match index % 2 {
            1 if is_paired => format!("<code>{part}</code>"),
            1 => format!("`{part}"),
            _ if index > 0 && !is_paired => format!("`{part}"),
            _ => part,
        };
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
    fn markup_is_escaped() {
        assert_eq!(
            escape("<script>alert('x' & \"y\")</script>\u{1b}[0m\u{0}"),
            "&lt;script&gt;alert(&#39;x&#39; &amp; &quot;y&quot;)&lt;/script&gt;\u{fffd}[0m\u{fffd}"
        );
    }

    #[test]
    fn a_table_has_headings_and_no_empty_columns() {
        let row = |name: &str, amount: &str| vec![Cell::text(name), Cell::default(), Cell::number(amount)];
        assert_eq!(
            table("a & b", &["Name", "Nothing", "Amount"], &[row("x<y", "1"), row("z", "")]),
            "<div class=\"wide\" role=\"region\" aria-label=\"a &amp; b\" tabindex=\"0\"><table>\n\
             <thead><tr><th scope=\"col\">Name</th><th scope=\"col\">Amount</th></tr></thead>\n<tbody>\n\
             <tr><th scope=\"row\">x&lt;y</th><td class=\"n\">1</td></tr>\n\
             <tr><th scope=\"row\">z</th><td class=\"n\"></td></tr>\n</tbody></table></div>\n"
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
