//! Texts before and after formatting.

use super::{format, is_same, parse_valid};
use crate::document::Value;

fn formatted(text: &str) -> String {
    format(text).unwrap_or_else(|| text.to_owned())
}

fn check(name: &str, text: &str) {
    let after = formatted(text);
    assert_eq!(formatted(&after), after, "formatting twice is formatting once");
    // Spaces at line ends must be visible.
    let visible = |text: &str| text.lines().map(|line| format!("{line}|\n")).collect::<String>();
    let mut settings = insta::Settings::clone_current();
    settings.set_omit_expression(true);
    settings.set_prepend_module_to_snapshot(false);
    let text = format!("{}\n----\n{}\n", visible(text).trim_end(), visible(&after).trim_end());
    settings.bind(|| insta::assert_snapshot!(name, text));
}

#[test]
fn indentation_and_blanks() {
    check(
        "indentation",
        "version: 1   \nname: x\n\n\n\nroles:\n     train:\n        run: x\n        env:\n                A: b\n     other:\n        run: y   \n\n\n",
    );
    check(
        "lists",
        "version: 1\nname: x\nimage:\n    from: a:1\n    copy:\n    -   from: .\n        to: /x\n    -   from: b\n        to: /y\n    apt:\n        - git\n        - curl\nroles: {a: {run: x}}",
    );
    check(
        "comments",
        "# head\nversion: 1  # one\nname: x\n\n   # about roles\nroles:\n    # about train\n    train:\n        # about run\n        run: x\n        # after run\n    # after train\n# end\n",
    );
    check(
        "scalars_over_lines",
        "version: 1\nname: x\nroles:\n    train:\n        run: |\n            a  \n              b\n\n            c\n        setup: >-\n            folded\n            text\n        env:\n            A: \"one\n              two\"\n",
    );
    check(
        "brackets_over_lines",
        "version: 1\nname: x\nroles:\n    train:\n        resources: {cpu: 1,\n                    memory: 1GiB}\n        needs: [\n            a,\n        ]\n        run: x\n",
    );
    check("line_ends", "version: 1 \r\nname: x\r\nroles:\r\n    a:\r\n        run: x\r\n");
}

#[test]
fn a_change_that_could_alter_the_document_is_not_made() {
    check("broken", "version: 1   \nname: [x\n");
    check("json", "{\n    \"version\": 1,   \n    \"name\": \"x\"\n}\n");
    check("fine", "version: 1\nname: x\nroles:\n  a:\n    run: x\n");
    check("kept_line_ends", "version: 1\nname: x\nroles:\n    a:\n        run: |+\n            x\n\n\n");
}

/// For any text, the result parses as the same document and keeps every comment.
#[test]
#[allow(clippy::disallowed_methods, reason = "the examples beside the crates are tests' input")]
fn every_example_means_the_same_when_formatted() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples");
    let mut count = 0;
    for directory in
        std::fs::read_dir(root).expect("the examples").map(|entry| entry.expect("an entry").path())
    {
        for name in ["job.yaml", "targets.yaml"] {
            let Ok(text) = std::fs::read_to_string(directory.join(name)) else { continue };
            // Double the indentation, so that there is something to change.
            let block = text.contains("run: |") || text.contains("run: >");
            let deeper: String = text
                .lines()
                .map(|line| format!("{}{line}\n", " ".repeat(line.len() - line.trim_start().len())))
                .collect();
            let after = formatted(&deeper);
            let (before, parsed) =
                (parse_valid(&deeper).expect("it parses"), parse_valid(&after).expect("it parses"));
            assert!(
                is_same(&before.root, &parsed.root) && matches!(parsed.root.value, Value::Mapping(_)),
                "{directory:?}"
            );
            let comments = |text: &str| text.matches('#').count();
            assert_eq!(comments(&deeper), comments(&after), "{directory:?}");
            // Block scalars keep their indentation relative to their key, which is now four.
            assert!(block || after == text, "{directory:?}/{name}:\n{after}");
            count += 1;
        }
    }
    assert!(count > 12, "only {count} files");
}

#[test]
fn keys_are_in_order() {
    check(
        "order",
        "# yaml-language-server: $schema=x\n\n# about roles\nroles:\n  # about b\n  b:\n    run: |\n      x\n\n      y\n\n    # how many\n    instances: 2  # two\n    resources: {memory: 1GiB, cpu: 1}\n    # the end of b\n  a:\n    run: z\nname: x\n\ntimeout: 1h\nversion: 1\nx-own: {}\nimage: busybox\n",
    );
    check("unknown_keys", "version: 1\nzebra: 1\nname: x\napple: 2\nroles: {a: {run: x, instances: 1}}\n");
    check("one_line_without_end", "roles: {a: {run: x}}\nname: x\nversion: 1");
}

#[test]
fn quotes_are_canonical() {
    check(
        "quotes",
        "version: 1\nname: 'x'\nroles:\n  a:\n    run: 'echo \"hi\" # no'\n    setup: 'a # b'\n    env:\n      A: \"1\"\n      B: 'yes'\n      C: \"plain text\"\n      D: 'tab\\t'\n      E: \"tab\\t\"\n      F: '你好'\n      G: {X: 'a, b', Y: 'c d'}\n      H: '${{ params.x }}'\n      I: 'it''s'\n      J: 'key: value'\n      K: ''\n",
    );
}
