use camino::Utf8Path;
use jobc_compiler::document::Document;

use super::Tree;
use crate::analysis::parse_alone;
use crate::text::{Encoding, Text};

fn read(before: Option<Tree>, name: &str, text: &str) -> Option<Tree> {
    Tree::read(before, Some(Utf8Path::new(name)), &Text::new(text.to_owned(), Encoding::Utf16))
}

const JOB: &str = "version: 1\nname: x\nroles:\n  a:\n    run: x\n  b:\n    run: y\n";

#[test]
fn a_tree_is_updated_with_its_text() {
    let mut tree = read(None, "job.yaml", JOB);
    let mut check = |text: &str, parses: bool| {
        tree = read(tree.take(), "job.yaml", text);
        let now = tree.as_ref().expect("a tree");
        assert_eq!((now.parses, now.text.as_str()), (parses, text));
        let whole: Option<Document> = parse_alone(Some(Utf8Path::new("job.yaml")), text);
        if let Some(whole) = whole {
            assert_eq!(now.document, whole, "{text}");
        }
        now.document.root.get("roles").map(|roles| roles.entries().len())
    };
    assert_eq!(check(&JOB.replace("run: x", "run: xx"), true), Some(2));
    assert_eq!(check(&JOB.replace("run: x", "run: [x"), false), Some(2), "both are still known");
    assert_eq!(check(&JOB.replace("run: x", "run: [x]"), true), Some(2));
    assert_eq!(check(&format!("{JOB}  c: {{run: z}}\n"), true), Some(3));
    assert_eq!(check(&JOB.replace("roles:", "roles"), false), None);
}

#[test]
fn positions_in_json_are_shifted_by_edits() {
    let json = "{\"version\": 1,\n \"name\": \"x\",\n \"roles\": {\"a\": {\"run\": \"x\"}}}";
    let broken = json.replace("\"x\",\n \"roles", "\"x,\n\n \"roles");
    let tree = read(read(None, "job.json", json), "job.json", &broken).expect("a tree");
    assert!(!tree.parses);
    let root = &tree.document.root;
    let span = |key: &str| root.entries().iter().find(|entry| entry.key == key).map(|entry| entry.key_span);
    let at = span("roles").expect("it is there");
    assert_eq!(&broken[at.range()], "\"roles\"");
    assert_eq!(root.span.end as usize, broken.len());
}
