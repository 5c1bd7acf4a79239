//! The open texts of the editor, and which of them are jobs.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use lsp_types::{TextDocumentContentChangeEvent, Uri};

use crate::text::{Encoding, Text};
use crate::uri;

/// The kind of a text; docs/reference/language-server.md has the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A job file.
    Job,
    /// A targets file.
    Targets,
    /// Another file, which a job may read.
    Other,
}

/// One text.
#[derive(Clone, Debug)]
pub(crate) struct OpenDocument {
    /// Its path; `None` if it has no file.
    pub(crate) path: Option<Utf8PathBuf>,
    /// The client's version number.
    pub(crate) version: i32,
    pub(crate) text: Text,
    pub(crate) kind: Kind,
    /// The client's language identifier of the text.
    language: String,
}

/// The texts by URI.
#[derive(Debug, Default)]
pub(crate) struct Documents {
    open: BTreeMap<String, OpenDocument>,
    by_path: BTreeMap<Utf8PathBuf, String>,
}

impl Documents {
    pub(crate) fn open(&mut self, uri: &Uri, language: &str, version: i32, text: String, encoding: Encoding) {
        let path = uri::path(uri);
        let kind = kind(language, path.as_deref(), &text);
        if let Some(path) = &path {
            self.by_path.insert(path.clone(), uri.0.clone());
        }
        let (text, language) = (Text::new(text, encoding), language.to_owned());
        self.open.insert(uri.0.clone(), OpenDocument { path, version, text, kind, language });
    }

    /// Applies changes in order; returns whether the text is open.
    pub(crate) fn change(
        &mut self,
        uri: &Uri,
        version: i32,
        changes: Vec<TextDocumentContentChangeEvent>,
    ) -> bool {
        use TextDocumentContentChangeEvent::{
            TextDocumentContentChangePartial, TextDocumentContentChangeWholeDocument,
        };
        let Some(open) = self.open.get_mut(&uri.0) else { return false };
        for change in changes {
            match change {
                TextDocumentContentChangePartial(part) => open.text.change(Some(part.range), &part.text),
                TextDocumentContentChangeWholeDocument(whole) => open.text.change(None, &whole.text),
            }
        }
        open.version = version;
        open.kind = kind(&open.language, open.path.as_deref(), open.text.as_str());
        true
    }

    /// Removes a text and returns it, if it was open.
    pub(crate) fn close(&mut self, uri: &Uri) -> Option<OpenDocument> {
        let open = self.open.remove(&uri.0)?;
        if let Some(path) = open.path.as_ref().filter(|path| self.by_path.get(*path) == Some(&uri.0)) {
            self.by_path.remove(path);
        }
        Some(open)
    }

    pub(crate) fn get(&self, uri: &Uri) -> Option<&OpenDocument> {
        self.open.get(&uri.0)
    }

    /// The open text of a file.
    pub(crate) fn at(&self, path: &Utf8Path) -> Option<(Uri, &OpenDocument)> {
        let uri = self.by_path.get(path)?;
        Some((Uri(uri.clone()), self.open.get(uri)?))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Uri, &OpenDocument)> {
        self.open.iter().map(|(uri, open)| (Uri(uri.clone()), open))
    }
}

const JOB_NAMES: [&str; 5] = ["job.yaml", "job.yml", "job.json", "jobc.yaml", "jobc.yml"];
const JOB_ENDINGS: [&str; 3] = [".job.yaml", ".job.yml", ".job.json"];

/// The languages of the VS Code extension: a text in one of them is a job, whatever its name.
const LANGUAGES: [&str; 2] = ["jobc", "jobc-json"];

fn kind(language: &str, path: Option<&Utf8Path>, text: &str) -> Kind {
    let name = path.and_then(Utf8Path::file_name).unwrap_or_default();
    if matches!(name, "targets.yaml" | "targets.yml") {
        return Kind::Targets;
    }
    if JOB_NAMES.contains(&name) || JOB_ENDINGS.iter().any(|ending| name.ends_with(ending)) {
        return Kind::Job;
    }
    let chosen = LANGUAGES.contains(&language);
    let extension = path.and_then(Utf8Path::extension).unwrap_or("yaml");
    if !chosen && !matches!(extension, "yaml" | "yml" | "json" | "jsonc") {
        return Kind::Other;
    }
    let modeline =
        text.lines().take(5).find_map(|line| line.split_once("$schema")).map_or("", |(_, rest)| rest);
    if modeline.contains("job.v1.schema.json") {
        Kind::Job
    } else if modeline.contains("targets.v1.schema.json") {
        Kind::Targets
    } else if chosen {
        let targets = has_key(text, "targets") && !has_key(text, "roles");
        if targets { Kind::Targets } else { Kind::Job }
    } else if (has_key(text, "version") && has_key(text, "roles")) || has_key(text, "taskRoles") {
        Kind::Job
    } else {
        Kind::Other
    }
}

/// Whether a key is at the top level. No parser is used, since the text is often incomplete.
fn has_key(text: &str, key: &str) -> bool {
    let json = text.trim_start().starts_with(['{', '/']);
    text.lines().any(|line| {
        let line = if json { line.trim_start_matches([' ', '\t', '{']) } else { line };
        let rest = line.strip_prefix(['"', '\'']).unwrap_or(line).strip_prefix(key);
        rest.is_some_and(|rest| rest.trim_start_matches(['"', '\'']).trim_start().starts_with(':'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_files_are_jobs() {
        let check = |name: &str, text: &str, expected: Kind| {
            assert_eq!(kind("yaml", Some(name.into()), text), expected, "{name}: {text}");
        };
        check("/a/job.yaml", "", Kind::Job);
        check("/a/resnet.job.yml", "", Kind::Job);
        check("/a/targets.yaml", "version: 1\nroles: {}\n", Kind::Targets);
        check("/a/train.yaml", "version: 1\nname: x\nroles:\n", Kind::Job);
        check("/a/train.yaml", "version: 1\nservices:\n  roles: 1\n", Kind::Other);
        check(
            "/a/train.yaml",
            "# yaml-language-server: $schema=https://example.com/schemas/job.v1.schema.json\n",
            Kind::Job,
        );
        check(
            "/a/places.yaml",
            "# yaml-language-server: $schema=../schemas/targets.v1.schema.json\n",
            Kind::Targets,
        );
        check("/a/pai.yaml", "protocolVersion: 2\ntaskRoles:\n  worker: {}\n", Kind::Job);
        check("/a/pai.json", "{\n  \"jobName\": \"x\",\n  \"taskRoles\": []\n}", Kind::Job);
        check("/a/deployment.yaml", "apiVersion: apps/v1\nkind: Deployment\n", Kind::Other);
        check("/a/requirements.txt", "version: 1\nroles: 2\n", Kind::Other);
        check("/a/Dockerfile", "FROM python\n", Kind::Other);
    }

    #[test]
    fn the_language_of_the_editor_takes_precedence_over_the_content() {
        let check = |language: &str, name: &str, text: &str, expected: Kind| {
            assert_eq!(kind(language, Some(name.into()), text), expected, "{language} {name}: {text}");
        };
        check("jobc", "/a/train.txt", "", Kind::Job);
        check("jobc", "/a/deployment.yaml", "kind: Deployment\n", Kind::Job);
        check("jobc-json", "/a/settings", "{}", Kind::Job);
        check("jobc", "/a/targets.yaml", "", Kind::Targets);
        check("jobc", "/a/places.yaml", "version: 1\ntargets:\n  lab: {}\n", Kind::Targets);
        check("jobc-json", "/a/p.json", "{\"$schema\": \"../targets.v1.schema.json\"}", Kind::Targets);
        check("yaml", "/a/deployment.yaml", "kind: Deployment\n", Kind::Other);
    }
}
