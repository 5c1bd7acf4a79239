//! Jobs with the mistakes of people who know other tools, and the result of `jobc check --fix --unsafe-fixes`.
//!
//! The files were written from the documentation alone, without seeing what jobc reports.
#![forbid(unsafe_code)]

use std::fmt::Write as _;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::diagnostic::Severity;
use jobc_compiler::diagnostic::apply::apply;
use jobc_compiler::source::Source;
use jobc_tests::compile::{Arguments, Case, Compilation};
use jobc_tests::disk::DiskFiles;
use jobc_tests::{entries, workspace};

/// The number of rounds of `jobc check --fix`.
const MAX_ROUNDS: usize = 20;

/// How many of the files must be valid at the end.
const VALID: usize = 45;

fn compile(path: &Utf8Path, text: &str) -> Compilation {
    let name = path.file_name().expect("a file has a name");
    let files = DiskFiles(path.parent().expect("a file lies in a directory").to_owned());
    Case {
        job: Source::new(Utf8PathBuf::from(name), text.to_owned()),
        targets: None,
        params: vec![],
        arguments: Arguments::default(),
        files: &files,
    }
    .compile()
}

/// The fixes of each round, and the remaining errors.
fn mend(path: &Utf8Path) -> (Vec<String>, Vec<String>) {
    let mut text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut done = Vec::new();
    for _ in 0..MAX_ROUNDS {
        let compiled = compile(path, &text);
        let is_job = |source: &Source| source.path().file_name() == path.file_name();
        let mut changed = apply(&compiled.sources, &compiled.findings, true, is_job);
        let Some(changed) = changed.pop() else { break };
        let line = |at: u32| compiled.sources.get(changed.source).line_column(at).line;
        done.extend(changed.fixes.iter().map(|(at, fix)| format!("{}: {}", line(*at), fix.message)));
        text = changed.text;
    }
    let compiled = compile(path, &text);
    let errors = compiled.findings.iter().filter(|finding| finding.severity == Severity::Error);
    if std::env::var_os("JOBC_SHOW").is_some() {
        println!("---- {path}\n{text}");
    }
    (done, errors.map(|finding| format!("{}: {}", finding.code, finding.message)).collect())
}

#[test]
fn broken_jobs_become_valid() {
    let (mut shown, mut valid, mut all) = (String::new(), 0, 0);
    for path in entries(&workspace().join("tests/broken")) {
        if path.extension() != Some("yaml") {
            continue;
        }
        let (done, left) = mend(&path);
        all += 1;
        valid += usize::from(left.is_empty());
        let _ = writeln!(shown, "{}", path.file_stem().unwrap_or_default());
        for line in done.into_iter().chain(left.into_iter().map(|error| format!("LEFT {error}"))) {
            let _ = writeln!(shown, "    {line}");
        }
    }
    insta::assert_snapshot!("broken", shown);
    assert!(all >= 50 && valid >= VALID, "{valid} of {all} are valid in the end");
}
