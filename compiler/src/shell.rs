//! Words of a shell command.

use std::borrow::Cow;

/// A word as the shell takes it: bare where it is plain, else in single quotes.
pub(crate) fn word(text: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-+=/:@%,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("'{}'", text.replace('\'', r"'\''")))
    }
}

#[cfg(test)]
mod tests {
    use super::word;

    #[test]
    fn only_plain_words_stay_bare() {
        assert_eq!(word("torch==2.4.0"), "torch==2.4.0");
        assert_eq!(word("numpy<2"), "'numpy<2'");
        assert_eq!(word("jax[cuda12]"), "'jax[cuda12]'");
        assert_eq!(word("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(word(""), "''");
    }
}
