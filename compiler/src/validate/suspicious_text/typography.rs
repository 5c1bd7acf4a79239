//! J0150: typographic quotes, dashes and blanks of a word processor or a web page.

use std::ops::Range;

use super::super::report::quoted;
use super::text_node::TextNode;
use crate::blank;
use crate::diagnostic::{Diagnostic, Fix, Location, Safety, Severity, Sink, codes};

/// Quotes that are ordinary characters to YAML and to a shell.
fn straight(c: char) -> Option<char> {
    match c {
        '“' | '”' | '„' | '‟' | '«' | '»' => Some('"'),
        '‘' | '’' | '‚' | '‛' => Some('\''),
        _ => None,
    }
}

/// The hyphens of an option that begins with a dash: word processors replace two hyphens with one dash.
fn hyphens(option: &str) -> String {
    let name = option.trim_start_matches(is_dash);
    let is_letter = name.chars().count() == 1;
    format!("{}{name}", if is_letter { "-" } else { "--" })
}

fn is_dash(c: char) -> bool {
    matches!(c, '–' | '—' | '−' | '‐' | '‑' | '－')
}

pub(super) fn check(written: &TextNode<'_>, sink: &mut Sink) {
    if written.text.is_ascii() {
        return;
    }
    if let Some(inner) = enclosed(written.text.trim()) {
        return sink.push(whole(written, inner));
    }
    if !written.is_command() {
        return;
    }
    let Unquoted { quotes, blanks, dashes } = unquoted(written.text);
    if let Some(first) = dashes.first() {
        let shown = &written.text[first.clone()];
        let instead = |found: &str| hyphens(found);
        let message = format!("`{shown}` does not begin an option: write `{}`", hyphens(shown));
        let fix = written.fix("write hyphens".to_owned(), &dashes, Safety::Unsafe, instead);
        sink.push(report(written, message, first, fix));
    }
    if let Some(first) = quotes.first() {
        let shown = &written.text[first.clone()];
        let instead = shown.chars().next().and_then(straight).unwrap_or('"');
        let message = format!("`{shown}` is a letter to a shell, not a quote: write `{instead}`");
        let safety = Safety::Unsafe;
        let inside = written.raw.chars().next().unwrap_or_default();
        let fix = written.fix("write straight quotes".to_owned(), &quotes, safety, |found| {
            match (inside, found.chars().next().and_then(straight).unwrap_or('"')) {
                ('"', '"') => "\\\"".to_owned(),
                ('\'', '\'') => "''".to_owned(),
                (_, quote) => quote.to_string(),
            }
        });
        sink.push(report(written, message, first, fix));
    }
    if let Some(first) = blanks.first() {
        let c = written.text[first.clone()].chars().next().unwrap_or_default();
        let name = blank::name(c).unwrap_or("blank");
        let article = if name.starts_with('i') { "an" } else { "a" };
        let message =
            format!("{article} {name} (U+{:04X}) is a letter to a shell, and not a space", u32::from(c));
        let instead = |found: &str| found.chars().map(blank::instead).collect::<String>();
        let fix = written.fix("write spaces".to_owned(), &blanks, Safety::Unsafe, instead);
        sink.push(report(written, message, first, fix));
    }
}

pub(super) fn report(
    written: &TextNode<'_>,
    message: String,
    first: &Range<usize>,
    fix: Option<Fix>,
) -> Diagnostic {
    let place = written.places(std::slice::from_ref(first)).and_then(|places| places.first().copied());
    let place = place.map_or_else(|| Location::value(&written.at), Location::Span);
    let mut diagnostic = Diagnostic::warning(codes::TYPOGRAPHY, message).at_place(place, "");
    diagnostic.fixes.extend(fix);
    diagnostic
}

/// Reports a text in typographic quotes: to YAML they are part of it.
fn whole(written: &TextNode<'_>, inner: &str) -> Diagnostic {
    let quote = written.text.trim().chars().next().unwrap_or('“');
    // No program has such a name.
    let severity = if written.is_command() { Severity::Error } else { Severity::Warning };
    let message = format!("the quotes `{quote}` are part of the text: YAML's own are `\"` and `'`");
    Diagnostic::new(codes::TYPOGRAPHY, severity, message).at(&written.at, "").fix(
        "write straight quotes",
        Location::value(&written.at),
        quoted(inner),
        Safety::Safe,
    )
}

/// The text inside typographic quotes, if one pair encloses all of it.
fn enclosed(text: &str) -> Option<&str> {
    let mut chars = text.chars();
    let (first, last) = (chars.next()?, chars.next_back()?);
    let alike = straight(first)? == straight(last)?;
    let inner = chars.as_str();
    (alike && !inner.contains(|c| straight(c).is_some())).then_some(inner)
}

/// Parts of a script that are ordinary characters to a shell.
#[derive(Default)]
struct Unquoted {
    quotes: Vec<Range<usize>>,
    blanks: Vec<Range<usize>>,
    /// Options that begin with a dash.
    dashes: Vec<Range<usize>>,
}

/// Finds typographic quotes and blanks, and options with dashes, outside quotes and comments of a script.
fn unquoted(script: &str) -> Unquoted {
    let Unquoted { mut quotes, mut blanks, mut dashes } = Unquoted::default();
    let mut open: Option<char> = None;
    let mut before = ' ';
    let mut comment = false;
    for (at, c) in script.char_indices() {
        let range = at..at + c.len_utf8();
        match open {
            _ if c == '\n' => comment = false,
            _ if comment || before == '\\' && blank::name(c).is_none() => {}
            Some(quote) => open = (c != quote).then_some(quote),
            None if c == '"' || c == '\'' => open = Some(c),
            None if c == '#' && before.is_whitespace() => comment = true,
            None if is_dash(c) && before.is_whitespace() => dashes.extend(option(script, at)),
            None if straight(c).is_some() => quotes.push(range),
            None if blank::name(c).is_some() => blanks.push(range),
            None => {}
        }
        before = if before == '\\' { ' ' } else { c };
    }
    Unquoted { quotes, blanks, dashes }
}

/// The dash and the name of an option; a dash alone is a word.
fn option(script: &str, at: usize) -> Option<Range<usize>> {
    let rest = script[at..].trim_start_matches(is_dash);
    let length =
        rest.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_')).unwrap_or(rest.len());
    let end = script.len() - rest.len() + length;
    rest.starts_with(|c: char| c.is_ascii_alphabetic()).then_some(at..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_shell_would_misread_is_found() {
        let check = |script: &str, counts: (usize, usize)| {
            let Unquoted { quotes, blanks, dashes } = unquoted(script);
            assert_eq!((quotes.len(), blanks.len()), counts, "{script}");
            assert!(dashes.is_empty(), "{script}");
        };
        check("python -c “print(1)”", (2, 0));
        check("echo \"he said “hi”\" # “no”\necho ‘a’", (2, 0));
        check("python\u{a0}t.py 'a\u{a0}b'", (0, 1));
        check("echo it\\’s", (0, 0));
    }

    #[test]
    fn options_with_dashes_get_hyphens() {
        let check = |script: &str, expected: &[&str]| {
            let found: Vec<String> =
                unquoted(script).dashes.into_iter().map(|range| hyphens(&script[range])).collect();
            assert_eq!(found, expected, "{script}");
        };
        check("python t.py –epochs 3 —lr=1 –v", &["--epochs", "--lr", "-v"]);
        check("echo a – b 'c –d' 1–2 # –e", &[]);
    }

    #[test]
    fn one_pair_encloses_a_text() {
        assert_eq!(enclosed("“python t.py”"), Some("python t.py"));
        assert_eq!(enclosed("“a” and “b”"), None);
        assert_eq!(enclosed("“"), None);
    }
}
