//! What fixes promise, over every case of `tests/errors/`: applied, a fix removes its finding and adds no error, and
//! whatever a finding tells to write comes with a fix.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::diagnostic::{Code, Diagnostic, Fix, Safety, Severity};
use jobc_compiler::source::Source;
use jobc_tests::compile::{Arguments, Case, Compilation, until};
use jobc_tests::disk::DiskFiles;
use jobc_tests::{entries, job_file, workspace};

/// A case with the texts that its findings point into, by name.
struct Texts {
    job: Utf8PathBuf,
    arguments: Arguments,
    /// What fixes have changed so far.
    changed: BTreeMap<Utf8PathBuf, String>,
}

impl Texts {
    fn source(&self, path: &Utf8Path) -> Source {
        let name = Utf8PathBuf::from(path.file_name().expect("a file has a name"));
        let text = self.changed.get(&name).cloned().unwrap_or_else(|| read(path));
        Source::new(name, text)
    }

    fn compile(&self) -> Compilation {
        let targets = self.job.with_file_name("targets.yaml");
        let files = DiskFiles(self.job.parent().expect("a job file lies in a directory").to_owned());
        Case {
            job: self.source(&self.job),
            targets: targets.is_file().then(|| self.source(&targets)),
            params: self.arguments.params.iter().map(|path| self.source(&files.0.join(path))).collect(),
            arguments: self.arguments.clone(),
            files: &files,
        }
        .compile()
    }

    /// The same texts with a fix applied; `None` where the fix edits a file that the case does not give as text.
    fn with(&self, fix: &Fix, compiled: &Compilation) -> Option<Self> {
        let mut changed = self.changed.clone();
        let mut edits: Vec<_> = fix.edits.iter().map(|edit| (edit.place.span(), &edit.text)).collect();
        edits.sort_by_key(|(span, _)| std::cmp::Reverse(span.map(|span| span.start)));
        for (span, text) in edits {
            let span = span.expect("the place of an edit is located");
            let source = compiled.sources.get(span.source);
            let all = [self.job.clone(), self.job.with_file_name("targets.yaml")];
            let params = self.arguments.params.iter().map(|path| self.job.with_file_name(path));
            let known =
                all.into_iter().chain(params).any(|path| path.file_name() == source.path().file_name());
            if !known {
                return None;
            }
            let after = changed.entry(source.path().to_owned()).or_insert_with(|| source.text().to_owned());
            after.replace_range(span.range(), text);
        }
        Some(Self { job: self.job.clone(), arguments: self.arguments.clone(), changed })
    }
}

fn read(path: &Utf8Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every case below `tests/errors/`, compiled as `tests/errors.rs` compiles it.
fn cases() -> Vec<(Texts, Compilation)> {
    let mut found = Vec::new();
    for directory in entries(&workspace().join("tests/errors")) {
        let code = Code::parse(directory.file_name().unwrap_or_default()).expect("a directory is a code");
        for path in entries(&directory) {
            let job = if path.is_dir() { job_file(&path).expect("a case has a job file") } else { path };
            if !matches!(job.extension(), Some("yaml" | "json")) {
                continue;
            }
            let args = job.with_file_name("args");
            let says = args.exists() || job.with_file_name("targets.yaml").exists();
            let given = if args.is_file() { Arguments::parse(&read(&args)) } else { Arguments::default() };
            let texts =
                |arguments: Arguments| Texts { job: job.clone(), arguments, changed: BTreeMap::new() };
            let case = if says {
                let texts = texts(given);
                let compiled = texts.compile();
                (texts, compiled)
            } else {
                let (target, compiled) = until(code, &given, |arguments| texts(arguments).compile());
                let mut arguments = given.clone();
                arguments.targets.extend(target.map(str::to_owned));
                (texts(arguments), compiled)
            };
            found.push(case);
        }
    }
    assert!(found.len() > 150, "only {} cases were found", found.len());
    found
}

fn same<'a>(findings: &'a [Diagnostic], of: &'a Diagnostic) -> usize {
    findings.iter().filter(|finding| finding.code == of.code && finding.message == of.message).count()
}

fn errors(compiled: &Compilation) -> impl Iterator<Item = &Diagnostic> {
    compiled.findings.iter().filter(|finding| finding.severity == Severity::Error)
}

/// Whether an error was there before: a file that the parser or the schema refuses does not reach the later passes, and
/// what they find elsewhere is no consequence of the fix.
fn was_hidden(error: &Diagnostic, fix: &Fix, before: &Compilation, after: &Compilation) -> bool {
    let pass = |code: Code| code.as_str()[1..3].parse::<u32>().expect("a code has a pass");
    let stopped = errors(before).map(|found| pass(found.code)).filter(|pass| *pass < 2).min();
    let line = |compiled: &Compilation, span: jobc_compiler::source::Span| {
        compiled.sources.get(span.source).line_column(span.start).line
    };
    let at = error.labels.first().and_then(|label| label.place.span()).map(|span| line(after, span));
    let edited = fix.edits.iter().filter_map(|edit| edit.place.span());
    let elsewhere = edited.map(|span| line(before, span)).all(|edited| Some(edited) != at);
    stopped.is_some_and(|stopped| pass(error.code) > stopped) && elsewhere
}

#[test]
fn a_fix_removes_its_finding_and_adds_no_error() {
    let (mut tried, mut faults) = (0, Vec::new());
    for (texts, before) in cases() {
        for finding in &before.findings {
            for fix in &finding.fixes {
                let Some(mended) = texts.with(fix, &before) else { continue };
                tried += 1;
                let after = mended.compile();
                let safety = if fix.safety == Safety::Safe { "safe" } else { "unsafe" };
                let what = format!(
                    "{} ({}, {safety}): {}",
                    texts.job.strip_prefix(workspace()).unwrap_or(&texts.job),
                    finding.code,
                    fix.message
                );
                if same(&after.findings, finding) >= same(&before.findings, finding) {
                    faults.push(format!("{what}\n    stays: {}", finding.message));
                }
                for error in errors(&after) {
                    let more = same(&after.findings, error) > same(&before.findings, error);
                    if more && !was_hidden(error, fix, &before, &after) {
                        faults.push(format!("{what}\n    adds {}: {}", error.code, error.message));
                    }
                }
            }
        }
    }
    assert!(tried > 50, "only {tried} fixes were tried");
    assert!(faults.is_empty(), "{} of {tried}:\n{}", faults.len(), faults.join("\n"));
}

/// Codes whose advice is no edit of what is written there, with the reason.
const ADVICE_ALONE: [(&str, &str); 17] = [
    ("J0289", "an option of the command line"),
    ("J0213", "one of two ways to go on"),
    ("J0261", "a key that is not there yet, in one of two places"),
    ("J0272", "a key that is not there yet, or none"),
    ("J0275", "one of two ways to go on, or a number of several"),
    ("J0281", "one of two kinds"),
    ("J0401", "a setting of the target, or another field"),
    ("J0404", "a setting of the target, or another field"),
    ("J0415", "a key that is not there yet"),
    ("J0416", "a setting of the target"),
    ("J0430", "a setting of the target"),
    ("J0431", "a key that is not there yet, or other numbers"),
    ("J0435", "a key that is not there yet, or another path"),
    ("J0450", "one key in place of another"),
    ("J0473", "two keys that are not there yet"),
    ("J0501", "an option of the command line"),
    ("J0603", "a tag that only the user knows"),
];

/// What a text tells to write, letter by letter: nothing where it holds a placeholder, or is an example.
fn output(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("did you mean `").or_else(|| {
        let (before, rest) = text.split_once("write `")?;
        Some((before, rest))
    })?;
    let word = rest.split('`').next()?;
    let placeholder =
        word.contains('…') || word.split(|c: char| !c.is_ascii_uppercase()).any(|w| w.len() > 2);
    let after = &rest[word.len() + 1..];
    // A key of another map, or one whose value changes its kind too.
    let a_part = [" and ", " in `", ", one "].iter().any(|more| after.starts_with(more));
    (!placeholder && !a_part && !rest.contains("such as")).then_some(word)
}

#[test]
fn what_a_finding_says_to_write_has_a_fix() {
    let mut faults = Vec::new();
    for (texts, compiled) in cases() {
        for finding in &compiled.findings {
            let code = finding.code.as_str();
            // Lints say what is odd about a job that is well-formed.
            let is_lint = code.starts_with("J03");
            // What the environment gives is in no file.
            let is_of_environment = finding.message.contains("of the environment variable");
            let exempt = is_lint || ADVICE_ALONE.iter().any(|(alone, _)| *alone == code);
            let labels = finding.labels.iter().map(|label| &label.text);
            let mut all = std::iter::once(&finding.message).chain(&finding.notes).chain(labels);
            if finding.fixes.is_empty()
                && !exempt
                && texts.arguments.set.is_empty()
                && !is_of_environment
                && let Some(text) = all.find(|text| output(text).is_some())
            {
                let job = texts.job.strip_prefix(workspace()).unwrap_or(&texts.job);
                faults.push(format!("{job} ({code}): {}\n    {text}", finding.message));
            }
        }
    }
    assert!(faults.is_empty(), "{}:\n{}", faults.len(), faults.join("\n"));
}
