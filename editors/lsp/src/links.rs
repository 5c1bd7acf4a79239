//! Files that a job names: links to them, and updated paths when they are renamed.

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::document::{Document, Node, Value};
use lsp_types::{TextEdit, Uri};
use serde_json::{Value as Json, json};

use crate::kind::Kind;
use crate::session::Session;
use crate::tree::Tree;
use crate::uri;

/// The links of a text: files and templates that exist, and the pages of codes in `x-jobc-allow`.
pub(crate) fn links(session: &Session<'_>, at: &Uri, tree: &Tree) -> Vec<Json> {
    let directory = directory(session, at);
    let mut found = vec![];
    walk(&tree.document, &mut |path, node| {
        let Some(text) = node.as_str() else { return };
        let target = match path {
            ["x-jobc-allow", ..] if text.starts_with('J') => {
                session.client.site.map(|site| (site.code(text), "the page of this code"))
            }
            _ if names_a_file(&tree.document, path) => directory
                .as_deref()
                .map(|directory| uri::normal(&directory.join(text)))
                .filter(|file| session.exists(file))
                .map(|file| (uri::of(&file).0, "open the file")),
            _ => None,
        };
        if let Some((target, tooltip)) = target {
            found.push(
                json!({"range": tree.text.range(inside(tree, node)), "target": target, "tooltip": tooltip}),
            );
        }
    });
    found
}

/// The edits that update paths in the open jobs; `renames` are pairs of URIs.
pub(crate) fn renamed(session: &Session<'_>, renames: &[(Uri, Uri)]) -> Vec<(Uri, TextEdit)> {
    let pairs: Vec<(Utf8PathBuf, Utf8PathBuf)> =
        renames.iter().filter_map(|(old, new)| Some((uri::path(old)?, uri::path(new)?))).collect();
    let new_path = |file: &Utf8Path| {
        pairs.iter().find_map(|(old, new)| {
            let rest = file.strip_prefix(old).ok()?;
            Some(if rest.as_str().is_empty() { new.clone() } else { new.join(rest) })
        })
    };
    let mut edits = vec![];
    for (job, _) in session.documents.iter().filter(|(_, open)| open.kind == Kind::Job) {
        let (Some(tree), Some(from)) =
            (session.tree(&job).filter(|tree| tree.parses), directory(session, &job))
        else {
            continue;
        };
        // The job itself may be moved.
        let own = uri::path(&job).and_then(|path| new_path(&path)?.parent().map(Utf8Path::to_owned));
        let to = own.unwrap_or_else(|| from.clone());
        walk(&tree.document, &mut |path, node| {
            let Some(text) = node.as_str().filter(|_| names_a_file(&tree.document, path)) else { return };
            let file = uri::normal(&from.join(text));
            if Utf8Path::new(text).has_root() || (new_path(&file).is_none() && to == from) {
                return;
            }
            let target = new_path(&file).unwrap_or(file);
            let new = relative(&to, &target, text.starts_with("./"));
            let range = inside(tree, node);
            // A text with escapes is not changed.
            if new != text && tree.text.as_str()[range.clone()] == *text {
                edits.push((job.clone(), TextEdit { range: tree.text.range(range), new_text: new }));
            }
        });
    }
    edits
}

/// Whether the value at a path is the path of a file next to the job.
pub(crate) fn names_a_file(document: &Document, path: &[&str]) -> bool {
    let value = || path.iter().try_fold(&document.root, |node, step| node.get(step)).and_then(Node::as_str);
    let is_path = || {
        value().is_some_and(|text| {
            !text.starts_with("std/") && !text.starts_with("git+") && !text.contains("${{")
        })
    };
    let named = match path {
        ["uses"]
        | ["roles", _, "uses"]
        | ["roles", _, "files", _, "from"]
        | [.., "dockerfile"]
        | [.., "python", "requirements"]
        | [.., "requirements", _]
        | [.., "conda", "file"] => true,
        // With `image`, the file belongs to that image.
        [above @ .., "from"] if above.len() > 1 && above[above.len() - 2] == "copy" => {
            let copy = above.iter().try_fold(&document.root, |node, step| node.get(step));
            copy.is_some_and(|copy| copy.get("image").is_none())
        }
        _ => false,
    };
    named && is_path()
}

fn walk(document: &Document, visit: &mut dyn FnMut(&[&str], &Node)) {
    fn below<'d>(node: &'d Node, path: &mut Vec<&'d str>, visit: &mut dyn FnMut(&[&str], &Node)) {
        // Indexes are only compared up to a realistic length of lists.
        const NUMBERS: [&str; 16] =
            ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15"];
        match &node.value {
            Value::Mapping(entries) => {
                for entry in entries {
                    path.push(&entry.key);
                    below(&entry.value, path, visit);
                    path.pop();
                }
            }
            Value::Sequence(items) => {
                for (item, number) in items.iter().zip(NUMBERS) {
                    path.push(number);
                    below(item, path, visit);
                    path.pop();
                }
            }
            _ => visit(path, node),
        }
    }
    below(&document.root, &mut vec![], visit);
}

fn directory(session: &Session<'_>, at: &Uri) -> Option<Utf8PathBuf> {
    Some(session.documents.get(at)?.path.as_deref()?.parent()?.to_owned())
}

/// The bytes of a string without its quotes.
fn inside(tree: &Tree, node: &Node) -> std::ops::Range<usize> {
    let range = node.span.range();
    let raw = &tree.text.as_str()[range.clone()];
    if raw.len() > 1 && raw.starts_with(['"', '\'']) { range.start + 1..range.end - 1 } else { range }
}

/// The path of a file relative to a directory.
fn relative(from: &Utf8Path, to: &Utf8Path, dotted: bool) -> String {
    let (a, b): (Vec<_>, Vec<_>) = (from.components().collect(), to.components().collect());
    let same = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let up = a[same..].iter().map(|_| "..");
    let parts: Vec<&str> = up.chain(b[same..].iter().map(camino::Utf8Component::as_str)).collect();
    let path = parts.join("/");
    if dotted && !path.starts_with("..") { format!("./{path}") } else { path }
}
