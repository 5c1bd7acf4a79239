//! Parts of a page in Markdown.

/// The text under a heading, up to the next of its kind.
///
/// # Panics
/// If the page does not have it: a missing rule would check nothing.
pub(crate) fn section<'p>(page: &'p str, heading: &str) -> &'p str {
    let start = page.find(&format!("{heading}\n")).unwrap_or_else(|| panic!("there is no `{heading}`"));
    let rest = &page[start + heading.len()..];
    &rest[..rest.find("\n## ").unwrap_or(rest.len())]
}

/// The first block between fences.
pub(crate) fn block(text: &str) -> &str {
    let inner = text.split("```\n").nth(1).expect("a block between fences");
    inner.trim_end_matches('\n')
}

/// The item of a list that begins so, with its further lines.
pub(crate) fn item<'p>(page: &'p str, begin: &str) -> &'p str {
    let start = page.find(&format!("\n* {begin}")).unwrap_or_else(|| panic!("there is no item `{begin}`"));
    let rest = &page[start + 1..];
    let end = rest.match_indices('\n').find(|(at, _)| !rest[at + 1..].starts_with("  "));
    &rest[..end.map_or(rest.len(), |(at, _)| at)]
}

/// The rows of a table whose header begins so, each as its cells.
pub(crate) fn table<'p>(page: &'p str, header: &str) -> Vec<Vec<&'p str>> {
    let mut lines = page.lines().skip_while(|line| !line.starts_with(header)).skip(2);
    let mut rows = Vec::new();
    while let Some(line) = lines.next().filter(|line| line.starts_with('|')) {
        rows.push(line.trim_matches('|').split('|').map(str::trim).collect());
    }
    assert!(!rows.is_empty(), "there is no table `{header}`");
    rows
}

/// The texts between backticks.
pub(crate) fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}
