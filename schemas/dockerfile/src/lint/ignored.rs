//! Sources of copies that `.dockerignore` excludes.

use std::path::Path;

use indexmap::IndexMap;

use super::super::build::{Inspection, Stage};
use super::super::forms::{ImageOrStage, Kind, Source, Word};
use super::super::glob;
use super::super::ignore::Ignore;
use super::super::refusal::Refusal;
use super::super::rules::Lint;
use super::super::variables::Variables;
use super::findings::Findings;

/// Reports sources of `COPY` and `ADD` that `.dockerignore` excludes from the context.
///
/// The builder checks patterns, and paths with variables that only a base image sets.
pub fn ignored_sources(file: &Inspection, ignore: &Ignore) -> Vec<Refusal> {
    let mut findings = Findings::default();
    if ignore.is_empty() {
        return Vec::new();
    }
    let mut environments: Vec<IndexMap<String, String>> = Vec::new();
    for stage in &file.stages {
        let environment = match &stage.from {
            ImageOrStage::Stage(below) => environments.get(*below).cloned().unwrap_or_default(),
            _ => IndexMap::new(),
        };
        let mut variables = Variables::without_base(file, environment);
        check(stage, &mut variables, ignore, &mut findings);
        environments.push(variables.env().clone());
    }
    findings.0
}

fn check(stage: &Stage, variables: &mut Variables<'_>, ignore: &Ignore, findings: &mut Findings) {
    for instruction in &stage.instructions {
        match &instruction.kind {
            // Errors of expansion are reported elsewhere.
            Kind::Arg(args) => drop(variables.declare(args)),
            Kind::Env(pairs) => drop(variables.set(pairs)),
            Kind::Copy(copy) | Kind::Add(copy) if copy.from.is_none() => {
                for source in &copy.sources {
                    if let Source::Path(word) = source {
                        path(word, variables, ignore, findings);
                    }
                }
            }
            _ => {}
        }
    }
}

fn path(word: &Word, variables: &Variables<'_>, ignore: &Ignore, findings: &mut Findings) {
    let Ok(text) = variables.expand(word) else { return };
    let clean: Vec<&str> = text.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
    let clean = clean.join("/");
    let elsewhere = text.contains('$') || text.contains("://") || text.starts_with("git@");
    if elsewhere || clean.is_empty() || clean.split('/').any(|name| name == "..") || glob::is_pattern(&clean)
    {
        return;
    }
    let path = Path::new(&clean);
    // A file below it may be included again.
    if ignore.excludes(path) && !ignore.enters(path) {
        findings.add(
            Lint::CopyIgnoredFile,
            word.span.clone(),
            format!("`.dockerignore` excludes `{text}`"),
            format!("remove the pattern from `.dockerignore`, or add `!{clean}` below it"),
        );
    }
}
