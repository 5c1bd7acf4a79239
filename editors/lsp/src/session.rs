//! The state between messages: the open texts, and their compilations.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::compile::Planning;
use jobc_compiler::files::{Files, find_targets};
use jobc_schema::BackendName;
use jobc_schema::plan::JobPlan;
use lsp_types::{Diagnostic, PublishDiagnosticsParams, TextDocumentContentChangeEvent, Uri};

use crate::analysis::{Analysis, Choice, Input};
use crate::client::Client;
use crate::diagnostics;
use crate::documents::{Documents, OpenDocument};
use crate::kind::Kind;
use crate::overlay::Overlay;
use crate::targets::TargetList;
use crate::tree::Tree;
use crate::uri;

/// The state of one client's session.
pub(crate) struct Session<'a> {
    pub(crate) client: Client,
    pub(crate) documents: Documents,
    disk: &'a dyn Files,
    /// The compilations, by the URI of the job.
    jobs: BTreeMap<String, Job>,
    /// The texts to compile again.
    stale: BTreeSet<String>,
    /// The findings that each open text has caused, by URI.
    caused: BTreeMap<String, BTreeMap<String, Vec<Diagnostic>>>,
    /// The findings that the client shows.
    shown: BTreeMap<String, Vec<Diagnostic>>,
    /// Messages for the user to be sent with the next response.
    warnings: RefCell<Vec<String>>,
    /// Plans to drop later: dropping a large one would delay the findings.
    gone: Vec<Planning>,
}

/// The state of one job or targets file.
#[derive(Default)]
pub(crate) struct Job {
    /// The last compilation.
    pub(crate) analysis: Option<Analysis>,
    /// The tree of the current text, or of an earlier one until [`Session::parse`] is called.
    pub(crate) tree: Option<Tree>,
    /// The plans of the last text without errors, if that is not the current text.
    earlier: Option<Planning>,
    /// Whether the text has changed since it was last parsed.
    unread: bool,
    /// The files that the last compilation read or looked for.
    reads: BTreeSet<Utf8PathBuf>,
}

impl<'a> Session<'a> {
    pub(crate) fn new(client: Client, disk: &'a dyn Files) -> Self {
        Self {
            client,
            documents: Documents::default(),
            disk,
            jobs: BTreeMap::new(),
            stale: BTreeSet::new(),
            caused: BTreeMap::new(),
            shown: BTreeMap::new(),
            warnings: RefCell::default(),
            gone: vec![],
        }
    }

    pub(crate) fn open(&mut self, uri: &Uri, language: &str, version: i32, text: String) {
        self.documents.open(uri, language, version, text, self.client.encoding);
        // A text that was closed and reopened between two refreshes waits for its findings, even if they are unchanged.
        self.shown.remove(&uri.0);
        self.mark_changed(uri);
    }

    pub(crate) fn change(&mut self, uri: &Uri, version: i32, changes: Vec<TextDocumentContentChangeEvent>) {
        if self.documents.change(uri, version, changes) {
            self.mark_changed(uri);
        } else {
            eprintln!("jobc lsp: ignored a change of `{}`, which is not open", uri.0);
        }
    }

    pub(crate) fn close(&mut self, uri: &Uri) {
        let Some(open) = self.documents.close(uri) else { return };
        self.jobs.remove(&uri.0);
        self.caused.remove(&uri.0);
        // The next refresh removes its findings.
        self.stale.insert(uri.0.clone());
        if open.kind != Kind::Job {
            self.affects(uri);
        }
    }

    /// Shows jobs for another target.
    pub(crate) fn show_target(&mut self, target: String) {
        if self.client.settings.target != target {
            self.client.settings.target = target;
            let jobs = self.documents.iter().filter(|(_, open)| open.kind == Kind::Job);
            self.stale.extend(jobs.map(|(uri, _)| uri.0));
        }
    }

    /// Marks the texts that must be compiled again after a change of a file on disk.
    pub(crate) fn file_changed(&mut self, uri: &Uri) {
        if self.documents.get(uri).is_none_or(|open| open.kind != Kind::Job) {
            self.affects(uri);
        }
    }

    fn mark_changed(&mut self, uri: &Uri) {
        self.stale.insert(uri.0.clone());
        let Some(open) = self.documents.get(uri) else { return };
        let kind = open.kind;
        if kind != Kind::Other {
            self.jobs.entry(uri.0.clone()).or_default().unread = true;
        }
        // No other open text reads a job.
        if kind != Kind::Job {
            self.affects(uri);
        }
    }

    /// Marks the jobs that read a file, or would if it existed.
    fn affects(&mut self, uri: &Uri) {
        let path = uri::path(uri);
        let by_name =
            matches!(path.as_deref().and_then(Utf8Path::file_name), Some("targets.yaml" | "targets.yml"));
        let reads = |job: &Job| {
            let Some(path) = path.as_deref() else { return false };
            // The new file may be a directory on the path.
            job.reads.iter().any(|read| read == path || read.starts_with(path) || path.starts_with(read))
        };
        let jobs = self.jobs.iter().filter(|(_, job)| by_name || reads(job));
        self.stale.extend(jobs.map(|(uri, _)| uri.clone()));
    }

    /// Whether findings may be out of date.
    pub(crate) fn is_stale(&self) -> bool {
        !self.stale.is_empty()
    }

    /// Compiles changed texts; returns the findings that the client must show. Call [`Session::settle`] afterwards.
    pub(crate) fn refresh(&mut self) -> Vec<PublishDiagnosticsParams> {
        self.parse();
        while let Some(uri) = self.stale.pop_first().map(Uri) {
            let caused = match self.documents.get(&uri).map(|open| open.kind) {
                Some(Kind::Job) => self.compile(&uri),
                Some(Kind::Targets) => self.check_targets(&uri),
                Some(Kind::Other) | None => BTreeMap::new(),
            };
            if caused.is_empty() {
                self.caused.remove(&uri.0);
            } else {
                self.caused.insert(uri.0.clone(), caused);
            }
        }
        self.difference()
    }

    /// The findings of each URI that differ from those that the client shows.
    fn difference(&mut self) -> Vec<PublishDiagnosticsParams> {
        let mut now: BTreeMap<String, Vec<Diagnostic>> = BTreeMap::new();
        // Findings are also published for an open text without any: a client may wait for them.
        for (uri, open) in self.documents.iter() {
            if open.kind != Kind::Other {
                now.insert(uri.0, vec![]);
            }
        }
        for (uri, findings) in self.caused.values().flatten() {
            let all = now.entry(uri.clone()).or_default();
            for finding in findings {
                // A targets file is compiled on its own and by each of its jobs.
                if !all.contains(finding) {
                    all.push(finding.clone());
                }
            }
        }
        let gone: Vec<String> = self.shown.keys().filter(|uri| !now.contains_key(*uri)).cloned().collect();
        now.extend(gone.into_iter().map(|uri| (uri, vec![])));
        let mut changed = vec![];
        for (uri, findings) in now {
            if self.shown.get(&uri) == Some(&findings) {
                continue;
            }
            let uri = Uri(uri);
            let version = self.documents.get(&uri).map(|open| open.version);
            if findings.is_empty() && version.is_none() {
                self.shown.remove(&uri.0);
            } else {
                self.shown.insert(uri.0.clone(), findings.clone());
            }
            changed.push(PublishDiagnosticsParams { uri, version, diagnostics: findings });
        }
        changed
    }

    fn compile(&mut self, uri: &Uri) -> BTreeMap<String, Vec<Diagnostic>> {
        let Some(open) = self.documents.get(uri) else { return BTreeMap::new() };
        let overlay = self.overlay(open);
        let tree = self.tree(uri).filter(|tree| tree.parses && tree.is_clean);
        let tree = tree.filter(|tree| tree.text.as_str() == open.text.as_str());
        let choice = self.choice(open, None);
        let analysis =
            Analysis::new(&self.input(open, &overlay), &choice, tree.map(|tree| tree.document.clone()));
        let caused = diagnostics::of_analysis(&analysis, uri, &self.client);
        let reads = overlay.requested.into_inner();
        self.store(uri, analysis, reads);
        caused
    }

    fn check_targets(&mut self, uri: &Uri) -> BTreeMap<String, Vec<Diagnostic>> {
        let Some(open) = self.documents.get(uri) else { return BTreeMap::new() };
        let path = open.path.clone().unwrap_or_else(|| "targets.yaml".into());
        let analysis = Analysis::of_targets(&path, open.text.as_str());
        let caused = diagnostics::of_analysis(&analysis, uri, &self.client);
        self.store(uri, analysis, BTreeSet::new());
        caused
    }

    /// Replaces the previous compilation, whose plans are kept if the new one has none.
    fn store(&mut self, uri: &Uri, analysis: Analysis, reads: BTreeSet<Utf8PathBuf>) {
        let job = self.jobs.entry(uri.0.clone()).or_default();
        let before = job.analysis.replace(analysis);
        job.reads = reads;
        if job.analysis.as_ref().is_some_and(|now| now.planned.is_none()) {
            job.earlier = before.and_then(|before| before.planned).or(job.earlier.take());
        } else {
            self.gone.extend(job.earlier.take());
            self.gone.extend(before.and_then(|before| before.planned));
        }
    }

    /// Parses the changed parts of texts that have changed since.
    pub(crate) fn parse(&mut self) {
        for (uri, job) in &mut self.jobs {
            if !job.unread {
                continue;
            }
            let Some(open) = self.documents.get(&Uri(uri.clone())) else { continue };
            let before = job.tree.take();
            job.tree = Tree::read(before, open.path.as_deref(), &open.text);
            job.unread = false;
        }
    }

    /// Does work that can wait until the findings are shown: dropping old plans.
    pub(crate) fn settle(&mut self) {
        self.gone.clear();
    }

    /// Shows the user a message with the response to the current request.
    pub(crate) fn warn(&self, message: String) {
        self.warnings.borrow_mut().push(message);
    }

    /// The messages since the last call.
    pub(crate) fn take_warnings(&self) -> Vec<String> {
        self.warnings.take()
    }

    /// The findings about a text.
    pub(crate) fn findings(&self, uri: &Uri) -> &[Diagnostic] {
        self.shown.get(&uri.0).map_or(&[], Vec::as_slice)
    }

    /// Every compiled text with its URI.
    pub(crate) fn analyses(&self) -> impl Iterator<Item = (Uri, &Analysis)> {
        self.jobs.iter().filter_map(|(uri, job)| Some((Uri(uri.clone()), job.analysis.as_ref()?)))
    }

    /// The state of an open text.
    pub(crate) fn job(&self, uri: &Uri) -> Option<&Job> {
        self.jobs.get(&uri.0)
    }

    /// The tree of an open text.
    pub(crate) fn tree(&self, uri: &Uri) -> Option<&Tree> {
        self.jobs.get(&uri.0)?.tree.as_ref()
    }

    /// The files that the job of an open text reads.
    pub(crate) fn overlay<'s>(&'s self, open: &'s OpenDocument) -> Overlay<'s> {
        self.files(open.path.as_deref().and_then(Utf8Path::parent))
    }

    /// The files below a directory.
    pub(crate) fn files<'s>(&'s self, directory: Option<&'s Utf8Path>) -> Overlay<'s> {
        Overlay { directory, documents: &self.documents, disk: self.disk, requested: RefCell::default() }
    }

    /// The compiler's input for an open text.
    pub(crate) fn input<'s>(&'s self, open: &'s OpenDocument, overlay: &'s Overlay<'_>) -> Input<'s> {
        let targets = self.targets_file(open);
        Input {
            path: open.path.as_deref(),
            text: open.text.as_str(),
            targets,
            files: overlay,
            empty_environment: self.client.settings.empty_environment,
        }
    }

    /// The targets that a job can be shown for.
    pub(crate) fn known_targets(&self, open: &OpenDocument) -> TargetList {
        TargetList::of(self.targets_file(open))
    }

    /// The targets that an open job is shown for.
    pub(crate) fn choice(&self, open: &OpenDocument, backend: Option<BackendName>) -> Choice {
        match self.client.settings.target.as_str() {
            "" => Choice { targets: vec![], backend },
            chosen => self.known_targets(open).choice(chosen, backend),
        }
    }

    /// The path and the text of a job's targets file.
    fn targets_file(&self, open: &OpenDocument) -> Option<(Utf8PathBuf, String)> {
        let path = self.targets_of(open)?;
        let text = self.text_of(&path)?;
        Some((path, text))
    }

    /// The path of a job's targets file.
    pub(crate) fn targets_of(&self, open: &OpenDocument) -> Option<Utf8PathBuf> {
        let directory = open.path.as_deref()?.parent()?;
        let exists = |path: &Utf8Path| self.documents.at(path).is_some() || self.disk.exists(path);
        find_targets(directory, exists, |directory| self.disk.is_last(directory))
    }

    /// The plug-in backends that a targets file in a directory may name. Nothing is started.
    pub(crate) fn plugins(&self, directory: Option<&Utf8Path>) -> Vec<(String, String)> {
        self.disk.plugins(directory.unwrap_or(Utf8Path::new("/")))
    }

    /// The templates in the directory of a job and those below it, with their texts: `./parts`, `./board.yaml`.
    pub(crate) fn templates(&self, uri: &Uri) -> Vec<(String, String)> {
        let path = self.documents.get(uri).and_then(|open| open.path.as_deref());
        let Some(directory) = path.and_then(Utf8Path::parent) else { return vec![] };
        let template = |name: String| {
            let file = match name.strip_suffix('/') {
                Some(name) => directory.join(name).join("template.yaml"),
                None if matches!(Utf8Path::new(&name).extension(), Some("yaml" | "yml")) => {
                    directory.join(&name)
                }
                None => return None,
            };
            let text = self.text_of(&file)?;
            let is_template = text.lines().any(|line| line.starts_with("template:"));
            is_template.then(|| (format!("./{}", name.trim_end_matches('/')), text))
        };
        self.disk.entries(directory).into_iter().filter_map(template).collect()
    }

    /// The text of a file, from the editor or the disk.
    pub(crate) fn text_of(&self, path: &Utf8Path) -> Option<String> {
        match self.documents.at(path) {
            Some((_, open)) => Some(open.text.as_str().to_owned()),
            None => String::from_utf8(self.disk.read(path).ok()?).ok(),
        }
    }

    /// Whether a file exists, in the editor or on disk.
    pub(crate) fn exists(&self, path: &Utf8Path) -> bool {
        self.documents.at(path).is_some() || self.disk.exists(path)
    }
}

impl Job {
    /// The resolved jobs of the last text without errors.
    pub(crate) fn plans(&self) -> &[JobPlan] {
        let now = self.analysis.as_ref().and_then(|analysis| analysis.planned.as_ref());
        now.or(self.earlier.as_ref()).map_or(&[], |planned| &planned.jobs)
    }
}
