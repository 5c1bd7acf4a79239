use super::*;

/// Prints the joined lines, each with the places of its words.
fn check(text: &str, expected: &[(&str, &str)]) {
    let read = read(text);
    let found: Vec<(String, String)> = read
        .lines
        .iter()
        .map(|line| {
            let words = super::super::split::by_blanks(line.part());
            let places: Vec<&str> = words.iter().map(|word| &text[word.span()]).collect();
            (line.part().text().to_owned(), places.join("|"))
        })
        .collect();
    let found: Vec<(&str, &str)> =
        found.iter().map(|(text, places)| (text.as_str(), places.as_str())).collect();
    assert_eq!(found, expected, "{text}");
    assert_eq!(read.refusals, [], "{text}");
}

#[test]
fn lines_are_joined_and_words_keep_their_places() {
    check("RUN a b\nCMD c\n", &[("RUN a b", "RUN|a|b"), ("CMD c", "CMD|c")]);
    check("RUN a \\\n  b", &[("RUN a   b", "RUN|a|b")]);
    check("RUN a\\\nb \\  \n\n# no\n  # no\n c\n", &[("RUN ab  c", "RUN|a\\\nb|c")]);
    check("\u{feff}# hi\r\n\r\n  RUN a \\\r\n b\r\n", &[("RUN a  b", "RUN|a|b")]);
    check("# escape=`\nRUN a\\\nRUN b `\nc", &[("RUN a\\", "RUN|a\\"), ("RUN b c", "RUN|b|c")]);
    check("RUN a \\\\\nRUN b", &[("RUN a \\\\", "RUN|a|\\\\"), ("RUN b", "RUN|b")]);
    check("RUN é\\\nü x", &[("RUN éü x", "RUN|é\\\nü|x")]);
    check("RUN a \\", &[("RUN a", "RUN|a")]);
    check("\\\n\\\n", &[]);
    check("", &[]);
}

#[test]
fn directives_are_at_the_top_only() {
    let escape = |text: &str| read(text).directives.escape;
    assert_eq!(escape("# escape=`\n"), '`');
    assert_eq!(escape("#syntax=docker/dockerfile:1\n# ESCAPE = `\n"), '`');
    assert_eq!(escape("# a comment\n# escape=`\n"), '\\');
    assert_eq!(escape("\n# escape=`\n"), '\\');
    assert_eq!(escape("# unknown=1\n# escape=`\n"), '\\');
    let refused = |text: &str| read(text).refusals.first().map(|refusal| refusal.message.clone());
    assert_eq!(refused("# escape=x\n").as_deref(), Some("`x` cannot be the escape character"));
    assert_eq!(refused("# escape=`\n# escape=`\n").as_deref(), Some("there are two directives `escape`"));
    for good in [
        "docker/dockerfile:1",
        "docker.io/docker/dockerfile:1.7-labs",
        "docker/dockerfile-upstream:master",
        "docker/dockerfile",
        "docker/dockerfile:experimental",
        "docker/dockerfile:labs",
        "docker/dockerfile:1.10-labs",
        "docker/dockerfile:1.0-experimental",
        "docker/dockerfile:1.1.7-experimental",
        "docker/dockerfile:master-labs",
        "docker/dockerfile-upstream:master-experimental",
        "docker/dockerfile:1@sha256:ac85f380a63b13dfcefa89046420e1781752bab202122f8f50032edf31be0021",
    ] {
        assert_eq!(refused(&format!("# syntax={good}\n")), None, "{good}");
    }
    for bad in ["docker/dockerfile:2", "ghcr.io/x/y", "docker/dockerfilex:1", "docker/dockerfile:experiment"]
    {
        assert!(refused(&format!("# syntax={bad}\n")).is_some(), "{bad}");
    }
}

#[test]
fn a_no_break_space_after_the_escape_character_is_rejected() {
    let found = read("FROM a\nRUN b \\\u{a0}\n  c\n");
    assert_eq!(found.lines.len(), 2, "one finding, and none about `c`");
    let messages: Vec<String> = found.refusals.iter().map(|refusal| refusal.message.clone()).collect();
    assert_eq!(messages, ["the blank U+00A0 after `\\` keeps the line from continuing on the next"]);
    assert_eq!(found.refusals[0].span, 14..16);
}
