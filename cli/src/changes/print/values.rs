//! Old and new values in one line.

use serde_json::Value;

/// Maximum number of characters of a value that are printed.
const MAX_VALUE_LEN: usize = 60;

/// Text as code in a cell of a table.
pub(super) fn code(text: &str) -> String {
    format!("`{}`", text.replace('`', "'").replace('|', "\\|"))
}

/// Both values in one line.
pub(super) fn values(old: Option<&Value>, new: Option<&Value>) -> String {
    match cells(old, new) {
        (Some(old), Some(new)) => format!("{old} -> {new}"),
        (None, Some(new)) => format!("new: {new}"),
        (Some(old), None) => format!("gone: {old}"),
        (None, None) => String::new(),
    }
}

/// Both values, each on one line. Long values with a common prefix are cut to start shortly before the difference.
pub(super) fn cells(old: Option<&Value>, new: Option<&Value>) -> (Option<String>, Option<String>) {
    let text =
        |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned).replace('\n', "\\n");
    let (old, new) = (old.map(text), new.map(text));
    let is_long = |text: &String| text.chars().count() > MAX_VALUE_LEN;
    let mut from = 0;
    if let (Some(old), Some(new)) = (&old, &new)
        && (is_long(old) || is_long(new))
    {
        let same = old.chars().zip(new.chars()).take_while(|(a, b)| a == b).count();
        from = same.saturating_sub(MAX_VALUE_LEN / 3);
    }
    let cut = |text: String| -> String {
        let count = text.chars().count();
        let shown: String = text.chars().skip(from).take(MAX_VALUE_LEN).collect();
        let (before, after) =
            (if from > 0 { "…" } else { "" }, if count > from + MAX_VALUE_LEN { "…" } else { "" });
        format!("{before}{shown}{after}")
    };
    (old.map(cut), new.map(cut))
}
