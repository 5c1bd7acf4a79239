//! Words of a POSIX shell, for the scripts that jobc writes and the commands that it shows.

/// A text as one word: bare if it is plain, otherwise in single quotes.
pub fn quote(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-+=/:@%,".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) { text.to_owned() } else { in_quotes(text) }
}

/// The words of a command, separated by blanks. The first is never read as an assignment.
pub fn join<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words = words.into_iter().enumerate().map(|(index, word)| match index {
        0 if word.contains('=') => in_quotes(word),
        _ => quote(word),
    });
    words.collect::<Vec<_>>().join(" ")
}

fn in_quotes(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Text that shells interpret.
    const AWKWARD: [&str; 36] = [
        "",
        " ",
        "a b",
        "'",
        "''",
        "it's $HOME",
        "\"",
        "\\",
        "\\n",
        "\\'",
        "$HOME",
        "`id`",
        "$(id)",
        "!",
        "a!b",
        "^",
        "*",
        "?",
        "[a]",
        "~",
        "~/a",
        "#",
        "&",
        "|",
        ";",
        "<",
        ">",
        "(",
        "{a,b}",
        "a\nb\n",
        "\t",
        "\r",
        "-n",
        "=x",
        "%1",
        "ä€😀",
    ];

    #[test]
    fn only_plain_words_stay_bare() {
        for (text, expected) in [
            ("torch==2.4.0", "torch==2.4.0"),
            ("/a/b-1.txt", "/a/b-1.txt"),
            ("--lr=1e-4,5%", "--lr=1e-4,5%"),
            ("numpy<2", "'numpy<2'"),
            ("jax[cuda12]", "'jax[cuda12]'"),
            ("it's $HOME", r"'it'\''s $HOME'"),
            ("~/a", "'~/a'"),
            ("訓練", "'訓練'"),
            ("", "''"),
        ] {
            assert_eq!(quote(text), expected);
        }
        assert_eq!(join(["a=b", "c=d", "e f"]), "'a=b' c=d 'e f'");
    }

    #[test]
    #[cfg(unix)]
    #[allow(clippy::disallowed_methods, reason = "a real shell judges what is quoted for one")]
    fn a_shell_reads_back_what_was_quoted() {
        let text = join(["printf", "<%s>"].into_iter().chain(AWKWARD));
        let output = Command::new("sh").args(["-c", &text]).output().unwrap();
        let expected: String = AWKWARD.iter().map(|text| format!("<{text}>")).collect();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    }
}
