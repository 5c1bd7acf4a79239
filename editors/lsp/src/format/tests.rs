//! Texts before and after.

use jobc_compiler::document::Value;

use super::{format, parse_valid, same};
use crate::tests::{Fixture, snapshot};
use crate::text::{Encoding, Text};

fn formatted(text: &str) -> String {
    let fixture = Fixture::new(text);
    let open = fixture.session.documents.get(&fixture.uri).expect("it is open");
    fixture.edited(&fixture.uri, &format(&open.text))
}

fn check(name: &str, text: &str) {
    let after = formatted(text);
    assert_eq!(formatted(&after), after, "formatting twice is formatting once");
    // Spaces at line ends must be visible.
    let visible = |text: &str| text.lines().map(|line| format!("{line}|\n")).collect::<String>();
    snapshot("format", name, &visible(text), &visible(&after));
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
fn what_is_left_alone() {
    check("broken", "version: 1   \nname: [x\n");
    check("json", "{\n    \"version\": 1,   \n    \"name\": \"x\"\n}\n");
    check("fine", "version: 1\nname: x\nroles:\n  a:\n    run: x\n");
    check("kept_line_ends", "version: 1\nname: x\nroles:\n    a:\n        run: |+\n            x\n\n\n");
}

/// For any text, the result is the same document with every comment.
#[test]
fn every_example_means_the_same_afterwards() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let mut count = 0;
    for directory in
        std::fs::read_dir(root).expect("the examples").map(|entry| entry.expect("an entry").path())
    {
        for name in ["job.yaml", "targets.yaml"] {
            let Ok(text) = std::fs::read_to_string(directory.join(name)) else { continue };
            // Twice the depth, so that there is something to change.
            let block = text.contains("run: |") || text.contains("run: >");
            let deeper: String = text
                .lines()
                .map(|line| format!("{}{line}\n", " ".repeat(line.len() - line.trim_start().len())))
                .collect();
            let after = formatted(&deeper);
            let (before, parsed) =
                (parse_valid(&deeper).expect("it parses"), parse_valid(&after).expect("it parses"));
            assert!(
                same(&before.root, &parsed.root) && matches!(parsed.root.value, Value::Mapping(_)),
                "{directory:?}"
            );
            let comments = |text: &str| text.matches('#').count();
            assert_eq!(comments(&deeper), comments(&after), "{directory:?}");
            // The lines of a block scalar keep their depth below their key, which doubling has made four.
            assert!(block || after == text, "{directory:?}/{name}:\n{after}");
            count += 1;
        }
    }
    assert!(count > 12, "only {count} files");
}

#[test]
fn edits_touch_lines_that_change_and_no_others() {
    let text = Text::new("version: 1\nname: x  \nroles: {a: {run: x}}\n".to_owned(), Encoding::Utf16);
    let edits = format(&text);
    assert_eq!(edits.len(), 1);
    assert_eq!((edits[0].range.start.line, &*edits[0].new_text), (1, "name: x"));
}
