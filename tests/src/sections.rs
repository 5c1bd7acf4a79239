//! Files of several named texts, which keep what a test reads and what it gives in one place.
//!
//! A line `==== NAME` begins a section. A section's text goes to the next such line.

const MARK: &str = "==== ";

/// The sections of a file, in order: name and text. What stands before the first one is left out.
pub fn sections(text: &str) -> Vec<(&str, String)> {
    let mut found: Vec<(&str, String)> = Vec::new();
    for line in text.split_inclusive('\n') {
        if let Some(name) = line.strip_prefix(MARK) {
            found.push((name.trim_end(), String::new()));
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
