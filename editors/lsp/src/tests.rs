//! Helpers for the tests of features: files in memory, open in a session, with a cursor.

mod conversation;
mod editing;
mod embedded;
mod features;
mod pipe;
mod sync;

use jobc_compiler::files::MemoryFiles;
use jobc_schema::site::Site;
use lsp_types::{Position, Range, Uri};

use crate::client::{Client, Settings};
use crate::session::Session;
use crate::text::{Encoding, Text};

/// Open files, and the cursor in one of them.
pub(crate) struct Fixture {
    pub(crate) session: Session<'static>,
    /// The file with the cursor, else the first.
    pub(crate) uri: Uri,
    /// From `$0` to `$1`, or `$0` alone.
    pub(crate) range: Range,
}

impl Fixture {
    /// Parses files that begin with `==== NAME`, or one `job.yaml`; a name in brackets is on disk and not open.
    pub(crate) fn new(text: &str) -> Self {
        Self::with(text, Settings::default())
    }

    pub(crate) fn with(text: &str, settings: Settings) -> Self {
        let text = if text.starts_with("==== ") { text.to_owned() } else { format!("==== job.yaml\n{text}") };
        let mut disk = MemoryFiles::default();
        let mut open = vec![];
        for file in text.split("==== ").skip(1) {
            let (name, text) = file.split_once('\n').expect("a name has a line of its own");
            if let Some(name) = name.strip_prefix('[') {
                disk = disk.with(&format!("/w/{}", name.trim_end_matches(']')), text);
            } else {
                open.push((name.to_owned(), text.to_owned()));
            }
        }
        let client = Client {
            encoding: Encoding::Utf16,
            settings,
            site: Some(Site::new("https://example.com")),
            related_information: true,
            code_description: true,
            snippets: true,
            adjusts_indentation: true,
            nested_symbols: true,
            versioned_edits: false,
            pulls: false,
            watches_files: false,
        };
        let disk: &'static MemoryFiles = Box::leak(Box::new(disk));
        let mut session = Session::new(client, disk);
        let mut cursor = None;
        for (name, text) in open {
            let uri = Uri(format!("file:///w/{name}"));
            let (text, range) = cut(&text);
            session.open(&uri, "yaml", 1, text);
            match range {
                Some(range) => cursor = Some((uri, range)),
                None if cursor.is_none() => cursor = Some((uri, Range::default())),
                None => {}
            }
        }
        session.refresh();
        session.settle();
        let (uri, range) = cursor.expect("a file is open");
        Self { session, uri, range }
    }

    pub(crate) fn position(&self) -> Position {
        self.range.start
    }

    /// Replaces the text of the file with the cursor; the last valid state is kept.
    pub(crate) fn becomes(&mut self, text: &str) {
        let (text, range) = cut(text);
        let whole = lsp_types::TextDocumentContentChangeWholeDocument { text };
        self.session.change(&self.uri.clone(), 2, vec![whole.into()]);
        self.session.refresh();
        self.session.settle();
        self.range = range.unwrap_or_default();
    }

    /// The file's text after edits.
    pub(crate) fn edited(&self, uri: &Uri, edits: &[lsp_types::TextEdit]) -> String {
        let mut text = self.session.documents.get(uri).expect("it is open").text.clone();
        let mut edits = edits.to_vec();
        edits.sort_by_key(|edit| std::cmp::Reverse(edit.range));
        for edit in edits {
            text.change(Some(edit.range), &edit.new_text);
        }
        text.as_str().to_owned()
    }
}

/// Removes the marks `$0` and `$1`.
fn cut(marked: &str) -> (String, Option<Range>) {
    let Some(start) = marked.find("$0") else { return (marked.to_owned(), None) };
    let text = marked.replacen("$0", "", 1);
    let end = text.find("$1").unwrap_or(start);
    let text = text.replacen("$1", "", 1);
    let lines = Text::new(text.clone(), Encoding::Utf16);
    (text, Some(lines.range(start..end)))
}

/// Compares with a snapshot next to a feature, which shows input and output together.
pub(crate) fn snapshot(feature: &str, name: &str, input: &str, output: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(format!("{}/src/{feature}/snapshots", env!("CARGO_MANIFEST_DIR")));
    settings.set_omit_expression(true);
    settings.set_prepend_module_to_snapshot(false);
    let text = format!("{}\n----\n{}\n", input.trim_end(), output.trim_end());
    settings.bind(|| insta::assert_snapshot!(name, text));
}
