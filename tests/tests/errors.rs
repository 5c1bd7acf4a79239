//! Every diagnostic code: its page, its cases under `tests/errors/`, and what each case says.
#![forbid(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};

use camino::Utf8Path;
use jobc_compiler::diagnostic::Code;
use jobc_tests::cases::{Case, Cases};
use jobc_tests::compile::{Arguments, compile_directory, compile_with, until};
use jobc_tests::page::{self, PageJob, Section};
use jobc_tests::sections::section;
use jobc_tests::workspace;
use regex::Regex;

/// Codes that a job file alone cannot cause: they need a `jobc` built without a backend, the build of an image, a
/// plug-in, or large files.
const OF_OTHER_BUILDS: [&str; 5] = ["J0405", "J0442", "J0458", "J0481", "J0482"];

/// What the problem matcher of the extension for VS Code reads a line by.
fn problem_pattern() -> Regex {
    let manifest = std::fs::read_to_string(workspace().join("editors/vscode/package.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    Regex::new(manifest["contributes"]["problemPatterns"][0]["regexp"].as_str().unwrap()).unwrap()
}

fn check(case: &Case, directory: &Utf8Path, problem: &Regex) {
    let says = ["args", "targets.yaml"].iter().any(|name| case.job.with_file_name(name).exists());
    let (target, compiled) = if says {
        (None, compile_directory(&case.job))
    } else {
        until(case.code, &Arguments::default(), |arguments| compile_with(&case.job, arguments))
    };
    let (short, text) = (compiled.short(), compiled.text());
    assert!(compiled.has(case.code), "{} does not give {}:\n{short}", case.job, case.code);
    for unlocated in ["job#/", "targets#/"] {
        assert!(!short.contains(unlocated), "a finding has a place that was never found:\n{short}");
    }
    let located = Regex::new(":[0-9]+:[0-9]+: ").unwrap();
    let in_a_line = format!("[{}]", case.code);
    // A finding about a file as a whole, or about an option, has no line.
    for line in short.lines().filter(|line| line.contains(&in_a_line) && located.is_match(line)) {
        assert!(problem.is_match(line), "the problem matcher does not read: {line}");
    }
    for output in [&short, &text] {
        for path in [directory, &workspace()] {
            assert!(!output.contains(path.as_str()), "a finding holds a path of this machine:\n{output}");
        }
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(workspace().join("tests/errors").join(case.code.as_str()));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let options = target.map(|name| section("options", &format!("--target {name}")));
    let files: String = case.files.iter().map(|(name, text)| section(name, text)).collect();
    let snapshot = files + &options.unwrap_or_default() + &section("text", &text);
    settings.bind(|| insta::assert_snapshot!(case.name.as_str(), snapshot));
}

#[test]
fn every_case_gives_its_code() {
    let cases = Cases::read();
    let number = cases.all.len();
    assert!(number > 400, "only {number} cases were found");
    let problem = problem_pattern();
    let fails =
        |case: &&Case| catch_unwind(AssertUnwindSafe(|| check(case, cases.directory(), &problem))).is_err();
    let failed = cases.all.iter().filter(fails).count();
    assert_eq!(failed, 0, "of {number} cases {failed} failed; each said why above");
}

#[test]
fn every_code_has_a_case() {
    let cases = Cases::read().all;
    let codes = Code::all().map(|(code, _)| code).filter(|code| !OF_OTHER_BUILDS.contains(&code.as_str()));
    let bare: Vec<&str> =
        codes.filter(|code| !cases.iter().any(|case| case.code == *code)).map(Code::as_str).collect();
    assert!(bare.is_empty(), "without a case under tests/errors/: {}", bare.join(", "));
}

#[test]
fn every_page_has_the_fixed_form() {
    let faults: Vec<String> = Code::all().flat_map(|(code, _)| page::faults(code)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_examples_of_the_pages_hold() {
    let mut faults = Vec::new();
    let mut compiled = 0;
    for (code, _) in Code::all() {
        let example = PageJob::read(code, Section::Example);
        let Some(example) = example.filter(|_| !OF_OTHER_BUILDS.contains(&code.as_str())) else { continue };
        compiled += 1;
        let (target, output) = until(code, &example.arguments, |arguments| example.compile(arguments));
        if !output.has(code) {
            faults.push(format!("{code}: its example does not give it:\n{}", output.short()));
        }
        let Some(instead) = PageJob::read(code, Section::WriteInstead) else { continue };
        let mut arguments = instead.arguments.clone();
        arguments.targets.extend(target.map(str::to_owned));
        let output = instead.compile(arguments);
        if output.has(code) {
            faults.push(format!("{code}: what to write instead gives it too:\n{}", output.short()));
        }
    }
    assert!(compiled > 20, "only {compiled} pages show a whole job");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
