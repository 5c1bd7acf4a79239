//! What fixes promise, over every case of `tests/errors/`: applied, a fix removes its finding and adds no error,
//! whatever a finding tells to write comes with a fix, and following either never leads back.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::diagnostic::{Code, Diagnostic, Fix, Safety, Severity, Sink};
use jobc_compiler::document::Node;
use jobc_compiler::emit::to_yaml;
use jobc_compiler::parse::parse;
use jobc_compiler::source::{Source, Sources};
use jobc_test_skip::{in_full, is_in_full};
use jobc_tests::cases::{Case, Cases};
use jobc_tests::compile::{self, Arguments, Compilation, until};
use jobc_tests::disk::DiskFiles;
use serde_json::Value;

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
        compile::Case {
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

/// The code and the name of a case, and its job file.
fn shown(job: &Utf8Path) -> Utf8PathBuf {
    let parts: Vec<&str> = job.iter().rev().take(3).collect();
    parts.into_iter().rev().collect()
}

fn read(path: &Utf8Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every case below `tests/errors/`, compiled as `tests/errors.rs` compiles it, and the directory of their files.
///
/// That takes longer than most of what is asked of them, so one test asks all.
fn cases() -> (Cases, Vec<(Texts, Compilation)>) {
    let cases = Cases::read();
    let compiled = cases.all.iter().map(|Case { code, job, .. }| {
        let args = job.with_file_name("args");
        let says = args.exists() || job.with_file_name("targets.yaml").exists();
        let given = if args.is_file() { Arguments::parse(&read(&args)) } else { Arguments::default() };
        let texts = |arguments: Arguments| Texts { job: job.clone(), arguments, changed: BTreeMap::new() };
        if says {
            let texts = texts(given);
            let compiled = texts.compile();
            return (texts, compiled);
        }
        let (target, compiled) = until(*code, &given, |arguments| texts(arguments).compile());
        let mut arguments = given.clone();
        arguments.targets.extend(target.map(str::to_owned));
        (texts(arguments), compiled)
    });
    let compiled: Vec<_> = compiled.collect();
    assert!(compiled.len() > 400, "only {} cases were found", compiled.len());
    (cases, compiled)
}

fn same<'a>(findings: &'a [Diagnostic], of: &'a Diagnostic) -> usize {
    findings.iter().filter(|finding| finding.code == of.code && finding.message == of.message).count()
}

fn errors(compiled: &Compilation) -> impl Iterator<Item = &Diagnostic> {
    compiled.findings.iter().filter(|finding| finding.severity == Severity::Error)
}

/// Whether an error was there before: a file that the parser or the schema refuses does not reach the later passes, and
/// what they find elsewhere does not come from the fix. The keys of another tool's file are not looked at.
fn was_hidden(error: &Diagnostic, fix: &Fix, before: &Compilation, after: &Compilation) -> bool {
    if before.findings.iter().any(|found| found.code.as_str() == "J0122") {
        return true;
    }
    let pass = |code: Code| code.as_str()[1..3].parse::<u32>().expect("a code has a pass");
    let stopped = errors(before).map(|found| pass(found.code)).filter(|pass| *pass < 2).min();
    let line = |compiled: &Compilation, span: jobc_compiler::source::Span| {
        compiled.sources.get(span.source).line_column(span.start).line
    };
    let at = error.labels.first().and_then(|label| label.place.span()).map(|span| line(after, span));
    let edited = fix.edits.iter().filter_map(|edit| edit.place.span());
    // A file of one line does not tell.
    let one_line = fix
        .edits
        .iter()
        .filter_map(|edit| edit.place.span())
        .all(|span| before.sources.get(span.source).text().trim_end().lines().count() == 1);
    let elsewhere = one_line || edited.map(|span| line(before, span)).all(|edited| Some(edited) != at);
    stopped.is_some_and(|stopped| pass(error.code) > stopped) && elsewhere
}

/// Whether an error was there before under the name that the fix changes.
fn was_renamed(error: &Diagnostic, fix: &Fix, before: &Compilation) -> bool {
    fix.edits.iter().filter(|edit| !edit.text.is_empty()).any(|edit| {
        let old = before.sources.slice(edit.place.span().expect("the place of an edit is located"));
        let name = |text: &str| format!("`{}`", text.trim_matches('"'));
        let (old, new) = (name(old), name(&edit.text));
        let message = error.message.replace(&new, &old);
        message != error.message && before.findings.iter().any(|found| found.message == message)
    })
}

/// Applies each fix of a case; returns their number and the problems.
fn try_all(texts: &Texts, before: &Compilation) -> (usize, Vec<String>) {
    let (mut tried, mut faults) = (0, Vec::new());
    for finding in &before.findings {
        for fix in &finding.fixes {
            let Some(mended) = texts.with(fix, before) else { continue };
            tried += 1;
            let after = mended.compile();
            let safety = if fix.safety == Safety::Safe { "safe" } else { "unsafe" };
            let job = shown(&texts.job);
            let what = format!("{job} ({}, {safety}): {}", finding.code, fix.message);
            if same(&after.findings, finding) >= same(&before.findings, finding) {
                faults.push(format!("{what}\n    stays: {}", finding.message));
            }
            for error in errors(&after) {
                let more = same(&after.findings, error) > same(&before.findings, error);
                let renamed = was_renamed(error, fix, before);
                if more && !renamed && !was_hidden(error, fix, before, &after) {
                    faults.push(format!("{what}\n    adds {}: {}", error.code, error.message));
                }
            }
        }
    }
    (tried, faults)
}

#[test]
fn fixes_keep_what_they_promise() {
    let (_directory, cases) = cases();
    every_suggested_text_has_a_fix(&cases);
    a_fix_removes_its_finding_and_adds_no_error(&cases);
    a_fix_is_right_in_json_and_in_every_style_of_yaml(&cases);
}

fn a_fix_removes_its_finding_and_adds_no_error(cases: &[(Texts, Compilation)]) {
    let (mut tried, mut faults) = (0, Vec::new());
    for (texts, before) in cases {
        let (count, wrong) = try_all(texts, before);
        tried += count;
        faults.extend(wrong);
    }
    assert!(tried > 150, "only {tried} fixes were tried");
    assert!(faults.is_empty(), "{} of {tried}:\n{}", faults.len(), faults.join("\n"));
}

/// The text of a job as JSON, as YAML with a line for each value, and as YAML on one line.
fn styles(text: &str) -> Vec<(&'static str, String)> {
    let mut sources = Sources::new();
    let id = sources.add(Source::new("job.yaml", text));
    let Some(document) = parse(&sources, id, &mut Sink::new()) else { return vec![] };
    let json = document.to_json();
    let lines = serde_json::to_string_pretty(&json).expect("a value is JSON");
    vec![("json", lines), ("yaml", to_yaml(&json)), ("yaml", json.to_string())]
}

/// In every style, or in one of each case where tests are short.
fn a_fix_is_right_in_json_and_in_every_style_of_yaml(cases: &[(Texts, Compilation)]) {
    let (mut tried, mut faults) = (0, Vec::new());
    for (case, (texts, before)) in cases.iter().enumerate() {
        if before.findings.iter().all(|finding| finding.fixes.is_empty()) {
            continue;
        }
        for (style, (extension, text)) in styles(&read(&texts.job)).into_iter().enumerate() {
            if style != case % 3 && !in_full() {
                continue;
            }
            let job = texts.job.with_extension(extension);
            let name = Utf8PathBuf::from(job.file_name().expect("a file has a name"));
            let changed = [(name, text)].into_iter().collect();
            let texts = Texts { job, arguments: texts.arguments.clone(), changed };
            let (count, wrong) = try_all(&texts, &texts.compile());
            tried += count;
            faults.extend(wrong);
        }
    }
    assert!(tried > if in_full() { 400 } else { 130 }, "only {tried} fixes were tried");
    assert!(faults.is_empty(), "{} of {tried}:\n{}", faults.len(), faults.join("\n"));
}

/// Codes whose advice is not an edit at that place, with the reason.
const ADVICE_ALONE: [(&str, &str); 13] = [
    ("J0289", "an option of the command line"),
    ("J0281", "a key of a template in braces"),
    ("J0299", "one of two images, of which only the user knows which"),
    ("J0338", "a key of a role that only the user knows"),
    ("J0401", "a setting of the target, or another field"),
    ("J0404", "a setting of the target, or another field"),
    ("J0416", "a setting of the target"),
    ("J0430", "a setting of the target"),
    ("J0450", "one key instead of another"),
    ("J0461", "a setting of the target"),
    ("J0501", "an option of the command line"),
    ("J0603", "a tag that only the user knows"),
    ("J0613", "a variable that is defined, or a default where it is used"),
];

/// The literal text that a message says to write; nothing if it has a placeholder or is an example.
fn output(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("did you mean `").or_else(|| {
        let (before, rest) = text.split_once("write `")?;
        // What a program writes to.
        (!before.ends_with("may ")).then_some((before, rest))
    })?;
    let word = rest.split('`').next()?;
    let placeholder =
        word.contains('…') || word.split(|c: char| !c.is_ascii_uppercase()).any(|w| w.len() > 2);
    let after = &rest[word.len() + 1..];
    // A key of another map, or one whose value changes its kind too.
    let a_part = [" and ", " in `", ", one ", ", the number "].iter().any(|more| after.starts_with(more));
    (!placeholder && !a_part && !rest.contains("such as")).then_some(word)
}

fn every_suggested_text_has_a_fix(cases: &[(Texts, Compilation)]) {
    let mut faults = Vec::new();
    for (texts, compiled) in cases {
        for finding in &compiled.findings {
            let code = finding.code.as_str();
            // What the environment gives is in no file.
            let is_of_environment = finding.message.contains("of the environment variable");
            let exempt = ADVICE_ALONE.iter().any(|(alone, _)| *alone == code);
            let labels = finding.labels.iter().map(|label| &label.text);
            let mut all = std::iter::once(&finding.message).chain(&finding.notes).chain(labels);
            if finding.fixes.is_empty()
                && !exempt
                && texts.arguments.set.is_empty()
                && !is_of_environment
                && let Some(text) = all.find(|text| output(text).is_some())
            {
                let job = shown(&texts.job);
                faults.push(format!("{job} ({code}): {}\n    {text}", finding.message));
            }
        }
    }
    assert!(faults.is_empty(), "{}:\n{}", faults.len(), faults.join("\n"));
}

/// The keys with values that a text says to write, and whether in the target: `write `a: b` for the target, or `c: d``.
fn keys_to_write(text: &str) -> Vec<(bool, String, Value)> {
    let Some((before, rest)) = text.split_once("write `") else { return vec![] };
    // One of several steps.
    if before.ends_with("and ") {
        return vec![];
    }
    let parts: Vec<&str> = rest.split('`').collect();
    let is_key =
        |at: usize| at == 0 || parts[at - 1].ends_with("or ") || parts[at - 1].ends_with("or write ");
    let mut found = vec![];
    for at in (0..parts.len()).step_by(2).filter(|at| is_key(*at)) {
        let after = parts.get(at + 1).copied().unwrap_or_default();
        let of_target = [" for the target", " of the target", " in the target"];
        let of_target = of_target.iter().any(|place| after.starts_with(place));
        let is_example = parts[at].contains('…') || after.starts_with(" in `") || after.starts_with(" and");
        let is_word = |word: &str| word.len() > 2 && word.chars().all(|c| c.is_ascii_uppercase());
        let has_placeholder = parts[at].split(|c: char| !c.is_alphanumeric()).any(is_word);
        let Ok(Value::Object(map)) = serde_yaml::from_str::<Value>(parts[at]) else { continue };
        if !is_example && !has_placeholder && map.len() == 1 {
            found.extend(map.into_iter().map(|(key, value)| (of_target, key, value)));
        }
    }
    found
}

/// The path to the deepest node at a byte of the text.
fn path_at(node: &Node, at: u32) -> Vec<String> {
    let has = |span: jobc_compiler::source::Span| span.start <= at && at < span.end;
    let items = node.items().iter().enumerate().map(|(number, item)| (number.to_string(), item.span, item));
    let entries = node.entries().iter().map(|entry| (entry.key.clone(), entry.key_span, &entry.value));
    let below = entries.chain(items).find(|(_, key, value)| has(*key) || has(value.span));
    below.map_or(vec![], |(key, _, value)| [vec![key], path_at(value, at)].concat())
}

impl Texts {
    /// A file of the case as a tree.
    fn tree(&self, path: &Utf8Path) -> Option<Node> {
        let mut sources = Sources::new();
        let id = sources.add(self.source(path));
        Some(parse(&sources, id, &mut Sink::new())?.root)
    }

    /// The same texts with a key at each place where advice may mean it, the likeliest first: beside what the finding
    /// points to and above that, or in the target and its backends.
    fn with_key(&self, at: Option<u32>, of_target: bool, key: &str, value: &Value) -> Vec<Self> {
        let path = if of_target { self.job.with_file_name("targets.yaml") } else { self.job.clone() };
        if of_target && !path.is_file() {
            return vec![];
        }
        let Some(tree) = self.tree(&path) else { return vec![] };
        let json = tree.to_json();
        let pointer =
            |path: &[String]| path.iter().map(|key| format!("/{}", key.replace('/', "~1"))).collect();
        let places: Vec<String> = if of_target {
            let names = json["targets"].as_object().into_iter().flat_map(|targets| targets.keys());
            let blocks = ["/kubernetes", "/slurm", "/openpai", ""];
            names.flat_map(|name| blocks.map(|block| format!("/targets/{name}{block}"))).collect()
        } else {
            let path = at.map(|at| path_at(&tree, at)).unwrap_or_default();
            (0..=path.len()).rev().map(|length| pointer(&path[..length])).collect()
        };
        let with = |place: &String| {
            let mut json = json.clone();
            json.pointer_mut(place)?.as_object_mut()?.insert(key.to_owned(), value.clone());
            let mut changed = self.changed.clone();
            let name = Utf8PathBuf::from(path.file_name().expect("a file has a name"));
            changed.insert(name, serde_json::to_string_pretty(&json).expect("a value is JSON"));
            Some(Self { job: self.job.clone(), arguments: self.arguments.clone(), changed })
        };
        places.iter().filter_map(with).collect()
    }
}

/// What becomes of a case by each fix of a finding, and by each key that it says to write where the schema takes it.
fn follow(texts: &Texts, before: &Compilation, finding: &Diagnostic) -> Vec<(String, Texts, Compilation)> {
    let mut followed = vec![];
    for fix in &finding.fixes {
        if let Some(mended) = texts.with(fix, before) {
            let after = mended.compile();
            followed.push((fix.message.clone(), mended, after));
        }
    }
    // Advice of the parser and the schema has fixes. J0338 has a finding for each image, of which a role uses one; J0450
    // is about one key instead of another.
    let code = finding.code.as_str();
    if !finding.fixes.is_empty() || code < "J02" || ["J0338", "J0450"].contains(&code) {
        return followed;
    }
    let invalid = |compiled: &Compilation| errors(compiled).filter(|e| e.code.as_str() < "J02").count();
    let of_job = |span: &jobc_compiler::source::Span| {
        before.sources.get(span.source).path().file_name() == texts.job.file_name()
    };
    let at =
        finding.labels.first().and_then(|label| label.place.span()).filter(of_job).map(|span| span.start);
    for text in finding.notes.iter().chain([&finding.message]) {
        for (of_target, key, value) in keys_to_write(text) {
            let all = texts.with_key(at, of_target, &key, &value).into_iter();
            let mut all = all.map(|mended| (mended.compile(), mended));
            if let Some((after, mended)) = all.find(|(after, _)| invalid(after) <= invalid(before)) {
                followed.push((format!("write `{key}: {value}`"), mended, after));
            }
        }
    }
    followed
}

#[test]
fn advice_never_leads_back() {
    if !is_in_full() {
        return;
    }
    let (mut tried, mut faults) = (0, Vec::new());
    let (_directory, cases) = cases();
    for (texts, before) in cases {
        let known = |finding: &Diagnostic| same(&before.findings, finding) > 0;
        for finding in &before.findings {
            for (what, mended, after) in follow(&texts, &before, finding) {
                tried += 1;
                let what = format!("{} ({}): {what}", shown(&texts.job), finding.code);
                if same(&after.findings, finding) >= same(&before.findings, finding) {
                    faults.push(format!("{what}\n    stays: {}", finding.message));
                    continue;
                }
                for new in after.findings.iter().filter(|new| !known(new)) {
                    for (then, _, last) in follow(&mended, &after, new) {
                        if same(&last.findings, finding) >= same(&before.findings, finding) {
                            faults.push(format!("{what}\n    then {} ({then}) leads back", new.code));
                        }
                    }
                }
            }
        }
    }
    assert!(tried > 200, "only {tried} pieces of advice were followed");
    assert!(faults.is_empty(), "{} of {tried}:\n{}", faults.len(), faults.join("\n"));
}
