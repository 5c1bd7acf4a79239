//! Words as shell text.
//!
//! ssh passes one text to the login shell of the user, which can be any: sh, csh, fish. So the text for it uses only
//! what all of them read alike: words of harmless characters, and single quotes around texts without quotes, backslashes
//! that an escape could begin with, and exclamation marks. Everything else is written as the octal escapes of
//! printf(1), which a POSIX shell evaluates.

/// The text for any login shell that has a POSIX shell run a script. `login` has that shell read the profiles.
pub(super) fn for_login_shell(script: &str, login: bool) -> String {
    let option = if login { "-lc" } else { "-c" };
    let mut escaped = String::with_capacity(script.len() * 2);
    for byte in script.bytes() {
        if byte.is_ascii_alphanumeric() || b" _-./=,:@+".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("\\0{byte:03o}"));
        }
    }
    format!(r#"exec /bin/sh {option} 'eval "$(printf %b "$0")"' '{escaped}'"#)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jobc_schema::shell;
    use std::process::Command;

    /// Texts that shells read in ways of their own.
    const AWKWARD: &[&str] = &[
        "",
        " ",
        "a b",
        "'",
        "''",
        "\"",
        "\\",
        "\\n",
        "\\'",
        "$HOME",
        "`id`",
        "$(id)",
        "!",
        "!!",
        "a!b",
        "*",
        "?",
        "[a]",
        "~",
        "#",
        "&",
        "|",
        ";",
        "<",
        ">",
        "(",
        ")",
        "{a,b}",
        "\n",
        "a\nb\n",
        "\t",
        "\r",
        "-n",
        "--",
        "=x",
        "A=b",
        "%s",
        "%",
        "ä€😀",
        "\u{1b}[0m",
        "^",
        "a\\0101",
        "\\c",
    ];

    fn check(shell: &[&str]) {
        let mut command = vec!["printf", "<%s>"];
        command.extend_from_slice(AWKWARD);
        let text = for_login_shell(&shell::join(command), false);
        let output = Command::new(shell[0]).args(&shell[1..]).arg(&text).output().unwrap();
        let expected: String = AWKWARD.iter().map(|text| format!("<{text}>")).collect();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected, "{shell:?}");
    }

    #[test]
    fn words_reach_a_command_through_any_login_shell() {
        for shell in [&["sh", "-c"][..], &["bash", "-c"], &["bash", "--posix", "-c"], &["dash", "-c"]] {
            check(shell);
        }
        // Those that a host need not have.
        for shell in ["csh", "tcsh", "fish", "zsh", "ksh", "busybox"] {
            let is_there = Command::new(shell).args(["-c", "true"]).output().is_ok();
            if is_there && shell != "busybox" {
                check(&[shell, "-c"]);
            } else if is_there {
                check(&["busybox", "sh", "-c"]);
            }
        }
    }

    #[test]
    fn the_text_has_only_what_all_shells_read_alike() {
        let text = for_login_shell(&shell::join(AWKWARD.iter().copied()), true);
        let (_, escaped) = text.rsplit_once(" '").unwrap();
        let is_harmless = |c: char| c.is_ascii_alphanumeric() || " _-./=,:@+\\'".contains(c);
        assert!(escaped.chars().all(is_harmless), "{escaped}");
        assert!(text.starts_with("exec /bin/sh -lc '"), "{text}");
    }
}
