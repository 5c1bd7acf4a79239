//! Every part of a file of another tool ends as a field, a note or a finding: in each sample, and in the public files where
//! the corpus lies beside the repository.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::diagnostic::Sink;
use jobc_compiler::document::Node;
use jobc_compiler::import::{Account, Outcome, Row, Selection};
use jobc_compiler::parse::parse;
use jobc_compiler::rewrite::{RewriteResult, rewrite};
use jobc_compiler::source::{Source, SourceId, Sources, Span};
use jobc_tests::disk::DiskFiles;
use jobc_tests::leaves::{Leaves, maps};
use jobc_tests::{entries, workspace};

/// What became of a file.
struct Imported {
    sources: Sources,
    id: SourceId,
    job: Option<String>,
    targets: String,
    account: Account,
    /// The places of the findings.
    found: Vec<Span>,
}

fn import(path: &Utf8Path, text: &str) -> Imported {
    let mut sources = Sources::new();
    let id = sources.add(Source::new(path.file_name().expect("a name"), text));
    let files = DiskFiles(path.parent().expect("a directory").to_owned());
    let selection = Selection { is_sketch: true, ..Selection::default() };
    let mut sink = Sink::new();
    let (result, account) = rewrite(&mut sources, id, &files, &selection, &mut sink);
    let labels = sink.finish().into_iter().flat_map(|found| found.labels);
    let found = labels.filter_map(|label| label.place.span()).filter(|span| span.source == id).collect();
    let (job, targets) = match result {
        RewriteResult::Job(job, targets) => (Some(job), targets.unwrap_or_default()),
        _ => (None, String::new()),
    };
    Imported { sources, id, job, targets, account, found }
}

fn files(directory: &Utf8Path) -> Vec<Utf8PathBuf> {
    if !directory.is_dir() {
        eprintln!("accounts: {directory} is absent");
        return vec![];
    }
    entries(directory).into_iter().filter(|path| path.is_file() && path.extension() != Some("snap")).collect()
}

/// The samples of the formats that are documents, and public ones.
fn documents() -> Vec<(Utf8PathBuf, String)> {
    let samples = ["compose", "kubernetes", "project", "small"];
    let samples = samples.map(|format| workspace().join("tests/foreign").join(format));
    let public = ["compose", "kubernetes"].map(|format| workspace().join("../shared/corpus").join(format));
    let all: Vec<_> = samples.iter().chain(&public).flat_map(|directory| files(directory)).collect();
    let is_document = |path: &Utf8PathBuf| matches!(path.extension(), Some("yaml" | "yml" | "json"));
    let read = |path: Utf8PathBuf| std::fs::read_to_string(&path).ok().map(|text| (path, text));
    all.into_iter().filter(is_document).filter_map(read).collect()
}

/// Parts of a file that are not about the job it becomes.
fn is_beside(node: &Node, path: &Utf8Path) -> bool {
    let kind = node.get("kind").and_then(Node::as_str).unwrap_or_default();
    let runs_pods = ["Pod", "JobSet", "LeaderWorkerSet", "Deployment", "StatefulSet"].contains(&kind);
    !kind.is_empty() && !kind.ends_with("Job") && !runs_pods
        // Definitions that no service refers to.
        || path.as_str().contains("compose") && node.get("services").is_none() && kind.is_empty()
}

/// Each scalar has a row, at itself or at the key that it belongs to.
#[test]
fn each_leaf_has_a_row() {
    let mut counted = 0;
    for (path, text) in documents() {
        let imported = import(&path, &text);
        let rows: BTreeSet<Span> = imported.account.rows().iter().map(|row| row.span).collect();
        // What another file changes, and what is refused before its parts are read.
        if imported.job.is_none() || rows.is_empty() {
            continue;
        }
        let Some(document) = parse(&imported.sources, imported.id, &mut Sink::new()) else { continue };
        let parts = match document.root.get("items") {
            Some(items) => items.items().to_vec(),
            None => vec![document.root.clone()],
        };
        let mut leaves = Leaves::default();
        for part in parts.iter().filter(|part| !is_beside(part, &path)) {
            match part.get("services") {
                Some(_) => {
                    let entries = part.entries().iter().filter(|entry| !entry.key.starts_with("x-"));
                    entries.for_each(|entry| {
                        leaves.count(&entry.value, rows.contains(&entry.key_span), &rows);
                    });
                }
                None => leaves.count(part, false, &rows),
            }
        }
        counted += leaves.counted;
        let source = imported.sources.get(imported.id);
        let missing: Vec<String> = leaves
            .missing
            .iter()
            .filter(|span| span.source == imported.id)
            .map(|span| format!("{}: {}", source.line_column(span.start).line, imported.sources.slice(*span)))
            .collect();
        assert!(missing.is_empty(), "{path}: not in the account:\n{}", missing.join("\n"));
    }
    assert!(counted > 500, "only {counted} leaves");
}

/// A key that no tool has, in any map of a sample, is in the job, in the targets, or has a row or a finding of its own.
#[test]
fn an_unknown_key_is_not_silent() {
    const KEY: &str = "Zzz_jobc";
    let mut counted = 0;
    let mut silent = vec![];
    let samples = documents().into_iter().filter(|(path, _)| {
        !path.as_str().contains("shared/corpus") && !path.as_str().contains("foreign/project")
    });
    for (path, text) in samples {
        let mut sources = Sources::new();
        let id = sources.add(Source::new(path.file_name().unwrap(), text.as_str()));
        let Some(document) = parse(&sources, id, &mut Sink::new()) else { continue };
        let before = import(&path, &text);
        let is_job = before.job.is_some();
        // What needs no field, or has a finding, is reported as a whole.
        let is_whole = |row: &&Row| matches!(row.outcome, Outcome::Note(_) | Outcome::Finding(..));
        let whole: BTreeSet<Span> =
            before.account.rows().into_iter().filter(is_whole).map(|row| row.span).collect();
        let parts = match document.root.get("items") {
            Some(items) => items.items().to_vec(),
            None => vec![document.root.clone()],
        };
        let parts: Vec<Node> = parts.into_iter().filter(|part| !is_beside(part, &path)).collect();
        for map in parts.iter().flat_map(|part| maps(part, &whole)) {
            let Some(first) = map.entries().first() else { continue };
            let at = usize::try_from(first.key_span.start).unwrap();
            let column = sources.get(id).line_column(first.key_span.start).column as usize - 1;
            let quoted = text[at..].starts_with('"');
            let key = if quoted { format!("\"{KEY}\": \"1\"") } else { format!("{KEY}: \"1\"") };
            let is_flow = quoted || text[..at].trim_end().ends_with('{');
            let key = if is_flow { key + ", " } else { format!("{key}\n{}", " ".repeat(column)) };
            let changed = format!("{}{key}{}", &text[..at], &text[at..]);
            let imported = import(&path, &changed);
            let span = |span: &Span| imported.sources.slice(*span).contains(KEY) && span.range().len() < 400;
            let has_row = imported.account.rows().iter().any(|row| {
                span(&row.span)
                    || matches!(&row.outcome, Outcome::Field(text) | Outcome::Target(text) if text.contains(KEY))
            });
            let is_written =
                imported.job.as_ref().is_some_and(|job| job.contains(KEY) || job.contains("zzz"));
            let is_found = imported.found.iter().any(span) || imported.job.is_none() && is_job;
            counted += 1;
            if !has_row && !is_written && !imported.targets.contains(KEY) && !is_found {
                let line = sources.get(id).line_column(first.key_span.start).line;
                silent.push(format!("{}:{line}: before `{}`", path.file_name().unwrap(), first.key));
            }
        }
    }
    assert!(counted > 200, "only {counted} maps");
    assert!(
        silent.is_empty(),
        "an unknown key vanishes in {} of {counted} maps:\n{}",
        silent.len(),
        silent.join("\n")
    );
}

/// An option that no tool has, in each place for options of a script or a command line, is refused at its place.
#[test]
fn an_unknown_option_is_not_silent() {
    let mut counted = 0;
    let options = [
        ("#SBATCH ", " --zzz-jobc=1"),
        ("srun ", " --zzz-jobc=1"),
        ("docker run ", " --zzz-jobc"),
        ("podman run ", " --zzz-jobc"),
    ];
    let samples =
        ["sbatch", "docker-run"].map(|format| files(&workspace().join("tests/foreign").join(format)));
    for path in samples.into_iter().flatten() {
        let text = std::fs::read_to_string(&path).unwrap();
        for (before, option) in options {
            // Where a command begins, or a line of options.
            let begins =
                |at: &usize| text[..*at].rsplit('\n').next().is_some_and(|line| line.trim().is_empty());
            let places = text.match_indices(before).map(|(at, _)| at).filter(begins);
            for at in places.map(|at| at + before.len() - 1) {
                let changed = format!("{}{option}{}", &text[..at], &text[at..]);
                let imported = import(&path, &changed);
                let is_found =
                    imported.found.iter().any(|span| imported.sources.slice(*span).contains("zzz-jobc"));
                assert!(is_found, "{path}: `{option}` vanishes behind `{before}` at byte {at}");
                counted += 1;
            }
        }
    }
    assert!(counted > 40, "only {counted} places");
}

/// The words of a command line in front of the image: each option has a row.
#[test]
fn each_option_of_a_command_line_has_a_row() {
    let mut counted = 0;
    for path in files(&workspace().join("tests/foreign/docker-run")) {
        let text = std::fs::read_to_string(&path).unwrap();
        let imported = import(&path, &text);
        let rows: Vec<Span> = imported.account.rows().iter().map(|row| row.span).collect();
        let start = text.find("docker run").or(text.find("podman run")).unwrap();
        let words = text[start..].split_whitespace().skip(2);
        // The image is the first word with `/` other than a path, or a variable of an image.
        let options = words.take_while(|word| {
            !word.contains('/') || word.contains([':', '=', '"', '$']) && !word.starts_with("$IMAGE")
        });
        for word in options.filter(|word| word.starts_with('-') && word.len() > 1) {
            let at = u32::try_from(word.as_ptr() as usize - text.as_ptr() as usize).unwrap();
            let has_row = rows.iter().any(|row| row.range().contains(&(at as usize)));
            assert!(has_row, "{path}: `{word}` is not in the account");
            counted += 1;
        }
    }
    assert!(counted > 30, "only {counted} options");
}

/// Every use of a variable of Slurm, and every option of `srun`, has a row.
#[test]
fn each_variable_of_slurm_has_a_row() {
    let mut counted = 0;
    for path in files(&workspace().join("tests/foreign/sbatch")) {
        let text = std::fs::read_to_string(&path).unwrap();
        let imported = import(&path, &text);
        let rows: Vec<Span> = imported.account.rows().iter().map(|row| row.span).collect();
        let body = text.lines().filter(|line| !line.trim_start().starts_with('#'));
        for word in body.flat_map(|line| line.match_indices("SLURM_").map(move |(at, _)| &line[at..])) {
            let at = word.as_ptr() as usize - text.as_ptr() as usize;
            let is_set = text[at..]
                .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .next()
                .is_some_and(|name| text[at + name.len()..].starts_with('='));
            let has_row = rows.iter().any(|row| row.range().contains(&at));
            assert!(has_row || is_set, "{path}: `{}` is not in the account", &word[..word.len().min(40)]);
            counted += 1;
        }
    }
    assert!(counted > 10, "only {counted} variables");
}
