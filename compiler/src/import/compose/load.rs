//! The files of a project, as one tree: override files, `include` and `extends`.

use camino::{Utf8Path, Utf8PathBuf};

use crate::diagnostic::{Diagnostic, codes};
use crate::document::{Document, Entry, Node, Value};
use crate::files::Files;
use crate::parse::parse;
use crate::source::{Source, SourceId, Sources, Span};

use super::super::draft::Draft;
use super::super::nodes::map;
use super::super::selection::Selection;
use super::super::values::{scalar, text_at, texts};
use super::merge::{merge, without_reset};
use super::paths::{joined, rebase};
use super::text::Variables;

/// The maximum depth of files that include others, and of services that extend others.
const MAX_DEPTH: usize = 16;
/// The maximum number of files of a project.
const MAX_FILES: usize = 200;
/// Names of a project's file, each with those of the file that changes it.
const OVERRIDES: [(&str, [&str; 2]); 4] = [
    ("compose.yaml", ["compose.override.yaml", "compose.override.yml"]),
    ("compose.yml", ["compose.override.yml", "compose.override.yaml"]),
    ("docker-compose.yml", ["docker-compose.override.yml", "docker-compose.override.yaml"]),
    ("docker-compose.yaml", ["docker-compose.override.yaml", "docker-compose.override.yml"]),
];
const SECTIONS: [&str; 5] = ["services", "volumes", "networks", "secrets", "configs"];

/// The files of a project that are being read.
pub(super) struct Loader<'l, 'd> {
    pub(super) sources: &'l mut Sources,
    pub(super) files: &'l dyn Files,
    pub(super) variables: &'l mut Variables,
    pub(super) draft: &'l mut Draft<'d>,
    /// The path of the first file, as the user gave it.
    path: Utf8PathBuf,
    /// The files that are being read, each named by the one before.
    open: Vec<Utf8PathBuf>,
    /// All files beside the first.
    others: Vec<(SourceId, Document)>,
}

impl<'l, 'd> Loader<'l, 'd> {
    /// A loader of the project of a file.
    pub(super) fn new(
        root: &Node,
        sources: &'l mut Sources,
        files: &'l dyn Files,
        variables: &'l mut Variables,
        draft: &'l mut Draft<'d>,
    ) -> Self {
        let path = sources.get(root.span.source).path().to_owned();
        let open = vec![Utf8PathBuf::from(path.file_name().unwrap_or_default())];
        Self { sources, files, variables, draft, path, open, others: vec![] }
    }

    /// The tree of a file and those that change it, and all files beside the first.
    pub(super) fn project(mut self, root: &Node, selection: &Selection) -> (Node, Vec<(SourceId, Document)>) {
        let mut whole = self.file(root, Utf8Path::new(""));
        let beside = if selection.only_named { None } else { self.override_file(root) };
        for id in beside.into_iter().chain(selection.files.iter().copied()) {
            let Some(document) = parse(self.sources, id, self.draft.sink) else { continue };
            let other = self.file(&document.root, Utf8Path::new(""));
            self.others.push((id, document));
            self.merge(&mut whole, other);
        }
        without_reset(&mut whole, self.sources, self.draft);
        (whole, self.others)
    }

    /// The override file beside a project's file, which `docker compose` reads without being asked.
    fn override_file(&mut self, root: &Node) -> Option<SourceId> {
        let (_, names) = OVERRIDES.iter().find(|(name, _)| self.path.file_name() == Some(name))?;
        let name = names.iter().find(|name| self.files.exists(Utf8Path::new(name)))?;
        let id = self.add(Utf8Path::new(name))?;
        let first = root.entries().first().map_or(root.span, |entry| entry.key_span);
        let message = format!("`{name}` is read with the file, as `docker compose` does");
        let found = Diagnostic::info(codes::IMPORT_WITH, message).at_span(first, "");
        self.draft.sink.push(found.note("`jobc import -f FILE` reads the named files alone"));
        Some(id)
    }

    /// Adds a file to the sources.
    fn add(&mut self, path: &Utf8Path) -> Option<SourceId> {
        let text = String::from_utf8(self.files.read(path).ok()?).ok()?;
        let shown = self.path.parent().unwrap_or(Utf8Path::new("")).join(path);
        Some(self.sources.add(Source::new(shown, text)))
    }

    /// The tree of one file, with what it includes and extends.
    fn file(&mut self, root: &Node, directory: &Utf8Path) -> Node {
        let mut root = root.clone();
        let Value::Mapping(entries) = &mut root.value else { return root };
        let services = entries.iter().position(|entry| entry.key == "services");
        if let Some(at) = services {
            let all = entries[at].value.entries().to_vec();
            let extended: Vec<Entry> =
                all.iter().map(|service| self.extended(service, &all, directory)).collect();
            if let Value::Mapping(services) = &mut entries[at].value.value {
                *services = extended;
            }
        }
        for entry in entries.iter_mut().filter(|entry| ["secrets", "configs"].contains(&entry.key.as_str())) {
            if let Value::Mapping(parts) = &mut entry.value.value {
                for part in parts.iter_mut() {
                    if let Value::Mapping(fields) = &mut part.value.value {
                        rebase(fields, directory);
                    }
                }
            }
        }
        let Some(at) = entries.iter().position(|entry| entry.key == "include") else { return root };
        let include = entries.remove(at);
        let items = if include.value.items().is_empty() {
            std::slice::from_ref(&include.value)
        } else {
            include.value.items()
        };
        for item in items {
            self.include(item, directory, &mut root);
        }
        root
    }

    /// Adds the resources of an included file.
    fn include(&mut self, item: &Node, directory: &Utf8Path, into: &mut Node) {
        let paths = match &item.value {
            Value::Mapping(_) => item.get("path").map(texts).unwrap_or_default(),
            _ => texts(item),
        };
        let mut whole: Option<Node> = None;
        let project = text_at(item, "project_directory").map(|path| self.variables.expanded(&path));
        for (path, part) in paths {
            let path = joined(directory, &self.variables.expanded(&path));
            let of_file = path.parent().unwrap_or(Utf8Path::new("")).to_owned();
            let base = project.as_ref().map_or(of_file, |project| joined(directory, project));
            if whole.is_none() {
                let files = item.get("env_file").map(texts).unwrap_or_default();
                let files: Vec<Utf8PathBuf> =
                    files.iter().map(|(file, _)| joined(directory, &self.variables.expanded(file))).collect();
                let files = if files.is_empty() { vec![joined(&base, ".env")] } else { files };
                for file in &files {
                    self.variables.add(file, self.files);
                }
            }
            let Some(document) = self.document(&path, part) else { continue };
            self.draft.account.field(part, "roles");
            self.open.push(path);
            let other = self.file(&document, &base);
            self.open.pop();
            match &mut whole {
                Some(whole) => self.merge(whole, other),
                None => whole = Some(other),
            }
        }
        let Some(included) = whole else { return };
        let Value::Mapping(entries) = &mut into.value else { return };
        for section in included.entries().iter().filter(|entry| SECTIONS.contains(&entry.key.as_str())) {
            let at = entries.iter().position(|entry| entry.key == section.key).unwrap_or_else(|| {
                let key = section.key_span;
                entries.push(Entry { key: section.key.clone(), key_span: key, value: map(key, vec![]) });
                entries.len() - 1
            });
            if !matches!(entries[at].value.value, Value::Mapping(_)) {
                entries[at].value = map(section.key_span, vec![]);
            }
            let Value::Mapping(own) = &mut entries[at].value.value else { continue };
            for part in section.value.entries() {
                match own.iter().find(|known| known.key == part.key) {
                    None => own.push(part.clone()),
                    Some(known) if section.key == "services" => {
                        let (message, key) =
                            (format!("two files have a service `{}`", part.key), known.key_span);
                        self.draft.invalid(
                            key,
                            message,
                            "Compose refuses this: give one of them another name",
                        );
                    }
                    // Networks and volumes may be declared in both.
                    Some(_) => {}
                }
            }
        }
    }

    fn merge(&mut self, whole: &mut Node, other: Node) {
        if let (Value::Mapping(own), Value::Mapping(other)) = (&mut whole.value, other.value) {
            merge(own, other, self.sources, self.draft);
        }
    }

    /// The tree of another file, which a part of a file names.
    fn document(&mut self, path: &Utf8Path, part: Span) -> Option<Node> {
        if self.open.iter().any(|open| open == path) {
            self.draft.invalid(part, format!("`{path}` includes itself"), "");
            return None;
        }
        if self.open.len() > MAX_DEPTH || self.others.len() > MAX_FILES {
            self.draft.invalid(part, "the file names too many others", "");
            return None;
        }
        if path.as_str().contains(':') || path.extension() == Some("git") {
            self.draft.refuse(
                part,
                "the file is on another host",
                "`docker compose config > compose.all.yaml` writes one file of all; import that",
            );
            return None;
        }
        let Some(id) = self.add(path) else {
            self.draft.lacks(
                part,
                format!("cannot read the file `{path}`"),
                "write its path relative to this file; Compose refuses to start without it",
            );
            return None;
        };
        let document = parse(self.sources, id, self.draft.sink)?;
        let root = document.root.clone();
        self.others.push((id, document));
        Some(root)
    }

    /// A service with the keys of the one that it extends.
    fn extended(&mut self, service: &Entry, services: &[Entry], directory: &Utf8Path) -> Entry {
        let mut done = service.clone();
        let mut own = service.value.entries().to_vec();
        rebase(&mut own, directory);
        if let Some(entry) = own.iter().find(|entry| entry.key == "extends").cloned() {
            own.retain(|entry| entry.key != "extends");
            let base = self.base(&service.key, &entry, services, directory, &mut vec![service.key.clone()]);
            let mut whole = base;
            merge(&mut whole, own, self.sources, self.draft);
            own = whole;
        }
        if !service.value.entries().is_empty() {
            done.value.value = Value::Mapping(own);
        }
        done
    }

    /// The keys of the service that a service extends, with those that this one extends in turn.
    fn base(
        &mut self,
        service: &str,
        extends: &Entry,
        services: &[Entry],
        directory: &Utf8Path,
        seen: &mut Vec<String>,
    ) -> Vec<Entry> {
        let part = extends.key_span;
        super::super::keyed::only(&extends.value, &["file", "service"], "`extends`", self.draft);
        let name = scalar(&extends.value).or_else(|| text_at(&extends.value, "service")).unwrap_or_default();
        let file = text_at(&extends.value, "file").map(|file| self.variables.expanded(&file));
        let name = self.variables.expanded(&name);
        let file = file.map(|file| joined(directory, &file));
        let is_other = file.as_ref().is_some_and(|file| self.open.last() != Some(file));
        let mark = file.as_ref().filter(|_| is_other).map_or(name.clone(), |file| format!("{file} {name}"));
        if seen.contains(&mark) || seen.len() > MAX_DEPTH {
            self.draft.invalid(part, format!("`{name}` extends itself"), "");
            return vec![];
        }
        seen.push(mark);
        let opened = match file.filter(|_| is_other) {
            Some(file) => {
                let at = extends.value.entries().iter().find(|entry| entry.key == "file");
                let at = at.map_or(part, |entry| entry.value.span);
                let Some(root) = self.document(&file, at) else { return vec![] };
                Some((file, root))
            }
            None => None,
        };
        let others = match &opened {
            Some((_, root)) => root.get("services").map_or(&[][..], Node::entries),
            None => services,
        };
        let Some(other) = others.iter().find(|service| service.key == name) else {
            self.draft.invalid(part, format!("unknown service `{name}`"), "");
            return vec![];
        };
        self.draft.account.field(part, format!("roles.{service}"));
        let mut entries = other.value.entries().to_vec();
        let next = entries.iter().find(|entry| entry.key == "extends").cloned();
        entries.retain(|entry| entry.key != "extends");
        let directory = opened.as_ref().map_or(directory, |(file, _)| file.parent().unwrap_or(directory));
        rebase(&mut entries, directory);
        self.open.extend(opened.as_ref().map(|(file, _)| file.clone()));
        if let Some(next) = next {
            let mut whole = self.base(service, &next, others, directory, seen);
            merge(&mut whole, entries, self.sources, self.draft);
            entries = whole;
        }
        if opened.is_some() {
            self.open.pop();
        }
        entries
    }
}
