//! The words of the command line that is completed.

/// The words before the one at the cursor, without the name of the program. The script passes them after `--`.
pub(crate) fn before_cursor() -> Vec<String> {
    let words = std::env::args_os().skip_while(|word| word != "--").skip(1);
    let mut words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let index = std::env::var("_CLAP_COMPLETE_INDEX").ok().and_then(|index| index.parse().ok());
    // Without an index the cursor is at the last word.
    words.truncate(index.unwrap_or(words.len().saturating_sub(1)));
    words.into_iter().skip(1).collect()
}

/// The value of an option among words: `--targets FILE`, `--targets=FILE`.
pub(crate) fn option<'w>(words: &'w [String], name: &str) -> Option<&'w str> {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.strip_prefix(name) {
            Some("") => return words.next().map(String::as_str),
            Some(rest) if rest.starts_with('=') => return Some(&rest[1..]),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn option_value_is_found_in_the_same_or_the_next_word() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(option(&words("build --targets a.yaml -t lab"), "--targets"), Some("a.yaml"));
        assert_eq!(option(&words("build --targets=a.yaml"), "--targets"), Some("a.yaml"));
        assert_eq!(option(&words("build --targetsy a.yaml --targets"), "--targets"), None);
    }
}
