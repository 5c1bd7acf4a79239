//! Each completion that is offered anywhere in a job is accepted: the result can be read, and has no new errors.

use std::collections::{BTreeMap, BTreeSet};

use jobc_compiler::diagnostic::Severity;
use jobc_compiler::files::MemoryFiles;
use lsp_types::{CompletionItem, CompletionItemTextEdit};

use super::{complete, snippet};
use crate::analysis::{Analysis, Choice, Input, parse_alone};
use crate::tests::Fixture;

/// A job with most fields, in block and in flow form.
const JOB: &str = include_str!("acceptance.job.yaml");

/// Errors of what is not complete: the value of a field is to be written.
const OPEN: [&str; 7] = ["J0102", "J0104", "J0108", "J0110", "J0204", "J0222", "J0243"];

/// Errors of two fields that do not agree, where either may be changed.
const DISAGREE: [&str; 13] = [
    "J0231", "J0254", "J0261", "J0263", "J0271", "J0276", "J0309", "J0310", "J0367", "J0370", "J0376",
    "J0450", "J0453",
];

/// The places of a text where somebody may type: `$0` between siblings, as a value, an item, and in brackets.
fn places(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let with = |number: usize, new: String| {
        let mut all: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        all[number] = new;
        all.join("\n") + "\n"
    };
    let mut found = vec![];
    let mut scalar = None;
    for (number, line) in lines.iter().enumerate() {
        let column = line.len() - line.trim_start().len();
        if let Some(above) = scalar {
            if column > above || line.is_empty() {
                found.push(with(number, format!("{line} $0")));
                continue;
            }
            scalar = None;
        }
        let indent = " ".repeat(column);
        found.push(with(number, format!("{indent}$0\n{line}")));
        if let Some((key, value)) = line.split_once(": ") {
            found.push(with(number, format!("{key}: $0")));
            if value.starts_with('|') {
                scalar = Some(column);
            }
        }
        if let Some(item) = line.trim_start().strip_prefix("- ") {
            found.push(with(number, line.replace(item, "$0")));
            found.push(with(number, format!("{line}\n{indent}- $0")));
        }
        for (at, bracket) in line.match_indices(['{', '[', '}', ']']) {
            // Not the braces of an expression, nor those of a text.
            let in_quotes = line[..at].matches('"').count() % 2 == 1;
            if in_quotes
                || line[..at].ends_with(['{', '$'])
                || line[at + 1..].starts_with(['{', '}'])
                || line[..at].ends_with('}')
            {
                continue;
            }
            let (before, after) = line.split_at(at + usize::from(matches!(bracket, "{" | "[")));
            found.push(with(
                number,
                if after.len() + before.len() == line.len() && matches!(bracket, "{" | "[") {
                    format!("{before}$0, {after}")
                } else {
                    format!("{before}, $0{after}")
                },
            ));
        }
        // A value in a flow map.
        for (at, _) in line.match_indices(": ") {
            let rest = &line[at + 2..];
            let end = rest.find([',', '}']).filter(|_| line[..at].contains('{')).unwrap_or(0);
            if end > 0 && !rest.starts_with(['{', '[', '"']) {
                found.push(with(number, format!("{}$0{}", &line[..at + 2], &rest[end..])));
            }
        }
    }
    found
}

/// The text after an item is accepted, with the words of its tab stops.
fn accepted(fixture: &Fixture, item: &CompletionItem) -> String {
    let Some(CompletionItemTextEdit::TextEdit(edit)) = &item.text_edit else { panic!("no edit") };
    let mut edit = edit.clone();
    edit.new_text = snippet::plain(&edit.new_text);
    if edit.new_text.contains('\n') {
        // As a client does it, which was told to adjust the indentation.
        let open = fixture.session.documents.get(&fixture.uri).unwrap();
        let line = &open.text.as_str()[open.text.line(edit.range.start.line as usize)];
        let indent = &line[..line.len() - line.trim_start_matches([' ', '-']).len()];
        let indent: String = indent.chars().map(|_| ' ').collect();
        edit.new_text = edit.new_text.replace('\n', &format!("\n{indent}"));
    }
    let edits: Vec<_> = item.additional_text_edits.iter().flatten().cloned().chain([edit]).collect();
    fixture.edited(&fixture.uri, &edits)
}

/// The codes and messages of the errors of a text.
fn errors(text: &str) -> Vec<String> {
    let files = MemoryFiles::default().with("src/train.py", "");
    let input =
        Input { path: Some("job.yaml".into()), text, targets: None, files: &files, empty_environment: false };
    let found = Analysis::new(&input, &Choice::default(), None).findings.into_iter();
    let errors = found.filter(|finding| finding.severity == Severity::Error);
    let counts = |code: &str| !OPEN.contains(&code) && !DISAGREE.contains(&code);
    let errors = errors.filter(|finding| counts(finding.code.as_str()));
    errors.map(|finding| format!("{} {}", finding.code, finding.message)).collect()
}

#[test]
fn what_is_accepted_is_valid() {
    let before = errors(JOB);
    assert!(before.is_empty(), "{before:#?}");
    let mut wrong: BTreeMap<String, String> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for place in places(JOB) {
        let fixture = Fixture::new(&place);
        let line = place.lines().find(|line| line.contains("$0")).unwrap_or_default();
        let role =
            place.lines().take_while(|other| *other != line).filter(|line| !line.starts_with("   ")).last();
        for item in complete(&fixture.session, &fixture.uri, fixture.position()) {
            let text = accepted(&fixture, &item);
            // Between the fields of one map it is the same everywhere.
            if !seen.insert((
                item.label.clone(),
                role.map(str::to_owned),
                line.replace(|c: char| c.is_alphanumeric(), ""),
            )) {
                continue;
            }
            let mut report = |what| wrong.insert(format!("{}: {what}", item.label), line.trim().to_owned());
            if parse_alone(None, &text).is_none() {
                report("is not YAML".to_owned());
                continue;
            }
            for error in errors(&text) {
                report(error);
            }
        }
    }
    assert!(seen.len() > 400, "only {} were offered", seen.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn within_a_script_only_expressions_and_variables_are_offered() {
    for line in ["$0", "echo $0", "  if true; then\n        im$0\n      fi", "run: $0", "image: $0"] {
        let text = JOB.replace("      echo ${{ params.lr }}\n", &format!("      echo a\n      {line}\n"));
        let fixture = Fixture::new(&text);
        let found = complete(&fixture.session, &fixture.uri, fixture.position());
        assert!(found.is_empty(), "{line}: {found:#?}");
    }
    let labels = |line: &str| -> Vec<String> {
        let mut fixture = Fixture::new(JOB);
        fixture
            .becomes(&JOB.replace("      echo ${{ params.lr }}\n", &format!("      echo a\n      {line}\n")));
        complete(&fixture.session, &fixture.uri, fixture.position())
            .into_iter()
            .map(|item| item.label)
            .collect()
    };
    let variables = labels("echo $$0");
    assert!(["LR", "JOBC_INDEX"].iter().all(|name| variables.iter().any(|it| it == name)), "{variables:?}");
    assert_eq!(labels("echo ${JOBC_$0"), variables);
    let scopes = labels("echo ${{ $0");
    assert!(scopes.contains(&"params".to_owned()) && !scopes.contains(&"image".to_owned()), "{scopes:?}");
}
