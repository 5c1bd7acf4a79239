//! The provenance of files: the digest of the plan, the version of jobc, the state of the sources in Git.
//!
//! It is added to the output of the backends, so it changes neither the plan nor its digest. `jobc build` omits it
//! unless it is requested, since golden files would change with every commit and version of jobc. [`without`]
//! removes it again to compare files.

mod fact_form;

use std::collections::BTreeMap;

use camino::Utf8Path;
use jobc_schema::BackendName;
use jobc_schema::plan::JobPlan;
use serde_json::Value;

use crate::backend::{Content, File};
use crate::diagnostic::Sink;
use crate::emit;
use crate::lower::BackendOutput;
use crate::parse::parse;
use crate::source::{Source, Sources};

use fact_form::FactForm;

/// Facts that the caller knows about the origin of the files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// The version of jobc.
    pub version: String,
    /// The state of the job file's repository; `None` outside a repository.
    pub source: Option<SourceState>,
    /// Digests of plans by job name, if they are not those of the built plans: a submitted job
    /// is renamed, but keeps the digest of the job file's plan.
    pub digests: BTreeMap<String, String>,
}

/// The state of a Git working tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceState {
    /// The commit, in hexadecimal digits.
    pub revision: String,
    /// Whether files differ from the commit, or are in no commit; `None` if that could not be determined.
    pub is_dirty: Option<bool>,
    /// The URL of the repository, without credentials.
    pub url: Option<String>,
}

/// The names of all facts.
const DIGEST: &str = "plan-digest";
const VERSION: &str = "version";
const REVISION: &str = "source-revision";
const DIRTY: &str = "source-dirty";
const URL: &str = "source-url";
const FACTS: [&str; 5] = [DIGEST, VERSION, REVISION, DIRTY, URL];

impl Provenance {
    /// The facts about a job, in a fixed order.
    fn facts(&self, job: &JobPlan) -> Vec<(&'static str, String)> {
        let digest = self.digests.get(&job.name).cloned().unwrap_or_else(|| job.digest().hex().to_owned());
        let mut facts = vec![(DIGEST, format!("sha256:{digest}")), (VERSION, self.version.clone())];
        if let Some(source) = &self.source {
            facts.push((REVISION, source.revision.clone()));
            facts.extend(source.is_dirty.map(|is_dirty| (DIRTY, is_dirty.to_string())));
            facts.extend(source.url.clone().map(|url| (URL, url)));
        }
        facts
    }

    /// Adds the facts to the files of a job, in each format that has a place for them.
    pub(crate) fn stamp(&self, job: &JobPlan, outputs: &mut [BackendOutput]) {
        let facts = self.facts(job);
        for output in outputs {
            for file in &mut output.files {
                if let Some(place) = FactForm::of(output.backend, &file.path) {
                    add(place, file, &facts);
                }
            }
        }
    }
}

fn add(place: FactForm, file: &mut File, facts: &[(&'static str, String)]) {
    match &mut file.content {
        Content::Yaml(value) | Content::Json(value) => place.add(value, facts),
        Content::Text(text) if place == FactForm::Comment => {
            let (line, count) = fact_form::add_comments(text, facts);
            fact_form::shift(&mut file.origins, line, count);
        }
        Content::Text(_) | Content::Dockerfile(_) | Content::Bytes(_) => {}
    }
}

/// A file as it would be without provenance; `None` if it has none. `path` is relative to the target's directory.
pub fn without(path: &Utf8Path, bytes: &[u8]) -> Option<Vec<u8>> {
    let backend: BackendName = path.components().next()?.as_str().parse().ok()?;
    let name = path.strip_prefix(backend.as_str()).ok()?;
    let place = FactForm::of(backend, name)?;
    let text = std::str::from_utf8(bytes).ok().filter(|text| text.contains(VERSION))?;
    if place == FactForm::Comment {
        return fact_form::remove_comments(text).map(String::into_bytes);
    }
    let mut sources = Sources::new();
    let id = sources.add(Source::new(path, text));
    let mut value: Value = parse(&sources, id, &mut Sink::new())?.to_json();
    let is_changed = place.remove(&mut value);
    let text =
        if path.extension() == Some("json") { emit::to_json } else { |value: &Value| emit::to_yaml(value) };
    is_changed.then(|| text(&value).into_bytes())
}

#[cfg(test)]
mod tests;
