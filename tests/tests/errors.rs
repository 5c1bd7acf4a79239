//! Every diagnostic code: its page, its cases under `tests/errors/`, and what each case says.
#![forbid(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::diagnostic::Code;
use jobc_tests::compile::{Arguments, compile_directory, compile_with, until};
use jobc_tests::page::{self, PageJob, Section};
use jobc_tests::{entries, job_file, workspace};

/// What no job file alone can cause: it takes a `jobc` that was built without a backend, or a plug-in.
const OF_OTHER_BUILDS: [&str; 3] = ["J0405", "J0481", "J0482"];

/// A case: the code its directory is named after, its name, its job file.
struct Case {
    code: Code,
    name: String,
    job: Utf8PathBuf,
}

/// Every case below `tests/errors/`; a directory that is no code, and a file that is no case, are refused.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for directory in entries(&workspace().join("tests/errors")) {
        let name = directory.file_name().expect("an entry has a name");
        let code = Code::parse(name).filter(|code| code.as_str() == name);
        let code = code.unwrap_or_else(|| panic!("{directory}: `{name}` is no code of the table"));
        for path in entries(&directory) {
            let (stem, extension) =
                (path.file_stem().unwrap_or_default(), path.extension().unwrap_or_default());
            let job = if path.is_dir() {
                job_file(&path).unwrap_or_else(|| panic!("{path}: a directory needs job.yaml or job.json"))
            } else if matches!(extension, "yaml" | "json") {
                path.clone()
            } else {
                assert_eq!(extension, "snap", "{path}: neither a job nor a snapshot");
                continue;
            };
            // Two files that differ in their extension alone would share a snapshot.
            let name = if path.is_dir() || extension == "yaml" {
                stem.to_owned()
            } else {
                format!("{stem}.{extension}")
            };
            cases.push(Case { code, name, job });
        }
    }
    cases
}

/// The input, unless it is too long to be read beside the output.
fn shown(job: &Utf8Path) -> String {
    let mut out = String::new();
    let directory = job.parent().expect("a job file lies in a directory");
    let alone = job.file_stem() != Some("job");
    let files = if alone { vec![job.to_owned()] } else { below(directory) };
    for path in files {
        let text = String::from_utf8_lossy(&std::fs::read(&path).expect("a file of the case")).into_owned();
        let name = path.strip_prefix(directory).unwrap_or(&path);
        let text = if text.len() > 6000 { format!("({} bytes)\n", text.len()) } else { text };
        out += &format!("==== {name}\n{text}");
        if !text.ends_with('\n') {
            out += "\n";
        }
    }
    out
}

fn below(directory: &Utf8Path) -> Vec<Utf8PathBuf> {
    entries(directory)
        .into_iter()
        .flat_map(|path| if path.is_dir() { below(&path) } else { vec![path] })
        .collect()
}

fn check(case: &Case) {
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
    for output in [&short, &text] {
        assert!(!output.contains(workspace().as_str()), "a finding holds a path of this machine:\n{output}");
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(workspace().join("tests/errors").join(case.code.as_str()));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let options = target.map(|name| format!("==== options\n--target {name}\n")).unwrap_or_default();
    let snapshot = format!("{}{options}==== short\n{short}==== text\n{text}", shown(&case.job));
    settings.bind(|| insta::assert_snapshot!(case.name.as_str(), snapshot));
}

#[test]
fn every_case_gives_its_code() {
    let cases = cases();
    assert!(cases.len() > 50, "only {} cases were found", cases.len());
    let failed = cases.iter().filter(|case| catch_unwind(AssertUnwindSafe(|| check(case))).is_err()).count();
    assert_eq!(failed, 0, "of {} cases {failed} failed; each said why above", cases.len());
}

#[test]
fn every_code_has_a_case() {
    let cases = cases();
    let codes = Code::all().map(|(code, _)| code).filter(|code| !OF_OTHER_BUILDS.contains(&code.as_str()));
    let bare: Vec<&str> =
        codes.filter(|code| !cases.iter().any(|case| case.code == *code)).map(Code::as_str).collect();
    assert!(bare.is_empty(), "without a case under tests/errors/: {}", bare.join(", "));
}

#[test]
fn every_snapshot_has_a_case() {
    let cases = cases();
    for directory in entries(&workspace().join("tests/errors")) {
        for path in entries(&directory).into_iter().filter(|path| path.extension() == Some("snap")) {
            let known = cases.iter().any(|c| {
                directory.file_name() == Some(c.code.as_str()) && path.file_stem() == Some(c.name.as_str())
            });
            assert!(known, "{path}: its case is gone");
        }
    }
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
