//! Files of several named texts, which keep the input and output of a test in one place.
//!
//! A line `==== NAME` begins a section. A section's text goes to the next such line.

const MARK: &str = "==== ";

/// Names and texts, in order.
pub type Sections = Vec<(String, String)>;

/// The sections of a file. Text before the first one is ignored.
pub fn sections(text: &str) -> Sections {
    let mut found = Sections::new();
    for line in text.split_inclusive('\n') {
        if let Some(name) = line.strip_prefix(MARK) {
            found.push((name.trim_end().to_owned(), String::new()));
        } else if let Some((_, text)) = found.last_mut() {
            text.push_str(line);
        }
    }
    found
}

/// One section as text that [`sections`] reads.
pub fn section(name: &str, text: &str) -> String {
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{MARK}{name}\n{text}{end}")
}
