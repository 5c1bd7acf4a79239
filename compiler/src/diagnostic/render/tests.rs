use jobc_schema::Pointer;

use super::{Format, TextStyle, render, summary};
use crate::diagnostic::{Code, Diagnostic, Edit, Fix, Location, Safety, codes};
use crate::source::{Source, SourceId, Sources, Span};

const JOB: &str = "version: 1
name: 画像分類-😀
roles:
  train:
    memory: 32GB\tx # タブ
    run: |
      python train.py
      echo done
    memory: 16GiB
";

/// One of everything a diagnostic can hold.
fn fixture() -> (Sources, Vec<Diagnostic>) {
    let mut sources = Sources::new();
    let job = sources.add(Source::new("jobs/my job, 50%.yaml", JOB));
    let targets = sources.add(Source::new("targets.yaml", "version: 1\ndefault: [lab]\n"));
    let find = |id: SourceId, what: &str, nth: usize| {
        let text = sources.get(id).text();
        let start = text.match_indices(what).nth(nth).unwrap().0;
        Span::new(id, start, start + what.len())
    };
    let twice = Diagnostic::error(codes::DUPLICATE_KEY, "duplicate key `memory`")
        .at_span(find(job, "memory", 1), "here again")
        .at_span(find(job, "memory", 0), "first here")
        .note("keep one of the two");
    let name = find(job, "画像分類-😀", 0);
    let mut named = Diagnostic::warning(codes::SYNTAX, "a name is ASCII: 100% of `a-z`, `0-9`\nand `-`")
        .at_span(name, "")
        .at_span(find(targets, "lab", 0), "this target asks for it")
        .fix("write `images`", Location::Span(name), "images", Safety::Unsafe);
    named.fixes.push(Fix {
        message: "quote both".to_owned(),
        edits: vec![
            Edit { place: Location::Span(name), text: "\"x\"".to_owned() },
            Edit { place: Location::Span(find(job, "16GiB", 0)), text: "\"16GiB\"".to_owned() },
        ],
        safety: Safety::Safe,
    });
    let lines = find(job, "|\n      python train.py\n      echo done", 0);
    let long = Diagnostic::info(codes::EMPTY, "a block of text").at_span(lines, "all of it");
    let at = Pointer::ROOT.keys(["roles", "train", "gpu"]);
    let nowhere = Diagnostic::error(codes::KEY, "this was never located").at(&at, "wanted here").fix(
        "write `gpu: 1`",
        Location::value(&at),
        "gpu: 1",
        Safety::Safe,
    );
    let bare = Diagnostic::info(codes::EMPTY, "no place at all").note("only a note");
    (sources, vec![twice, named, long, nowhere, bare])
}

fn check(format: Format, style: &TextStyle) -> String {
    let (sources, diagnostics) = fixture();
    let input: Vec<String> = sources.iter().map(|(_, s)| format!("{}:\n{}", s.path(), s.text())).collect();
    let input = input.concat();
    format!("{input}----\n{}", render(format, &sources, &diagnostics, style))
}

#[test]
fn text() {
    insta::assert_snapshot!(check(Format::Text, &TextStyle { unicode: true, ..TextStyle::default() }));
}

#[test]
fn text_in_ascii() {
    insta::assert_snapshot!(check(Format::Text, &TextStyle::default()));
}

#[test]
fn short() {
    insta::assert_snapshot!(check(Format::Short, &TextStyle::default()));
}

#[test]
fn json() {
    insta::assert_snapshot!(check(Format::Json, &TextStyle::default()));
}

#[test]
fn sarif() {
    insta::assert_snapshot!(check(Format::Sarif, &TextStyle::default()));
}

#[test]
fn github() {
    insta::assert_snapshot!(check(Format::Github, &TextStyle::default()));
}

/// Renders one finding on a text in all formats, and returns the first.
fn odd(text: &str, code: Code, start: usize, end: usize) -> String {
    let mut sources = Sources::new();
    let id = sources.add(Source::new("a.yaml", text));
    let span = Span::new(id, start, end);
    let found = vec![Diagnostic::error(code, "odd").at_span(span, "here").fix(
        "mend",
        Location::Span(span),
        "x",
        Safety::Safe,
    )];
    for format in [Format::Short, Format::Json, Format::Sarif, Format::Github] {
        assert!(render(format, &sources, &found, &TextStyle::default()).contains("odd"));
    }
    render(Format::Text, &sources, &found, &TextStyle { width: 60, ..TextStyle::default() })
}

#[test]
fn odd_places() {
    let long = format!("a: {}HERE{}\n", "x".repeat(5000), "y".repeat(5000));
    let wide = format!("a: {}見{}\n", "漢".repeat(100), "字".repeat(100));
    let texts = [
        odd("", codes::EMPTY, 0, 0),
        odd("a: 1\n", codes::EMPTY, 5, 5),
        odd("a: 1\r\nb: 2\r\n", codes::EMPTY, 4, 6),
        odd("\u{feff}\t\t漢\tx\n", codes::EMPTY, 9, 10),
        odd("a\u{1b}[31m: \u{202e}b\n", codes::EMPTY, 6, 7),
        odd(&long, codes::EMPTY, 5003, 5007),
        odd(&wide, codes::EMPTY, 303, 306),
        odd("a: 1\nb: 2\n", codes::EMPTY, 0, 10),
    ];
    insta::assert_snapshot!(texts.join("====\n"));
}

#[test]
fn color_is_requested() {
    let (sources, diagnostics) = fixture();
    let style = |color| TextStyle { color, ..TextStyle::default() };
    assert!(render(Format::Text, &sources, &diagnostics, &style(true)).contains("\u{1b}["));
    assert!(!render(Format::Text, &sources, &diagnostics, &style(false)).contains('\u{1b}'));
    assert_eq!(render(Format::Text, &sources, &[], &style(true)), "");
}

#[test]
fn the_summary_counts() {
    let (_, diagnostics) = fixture();
    assert_eq!(summary(&diagnostics).as_deref(), Some("2 errors and 1 warning"));
    assert_eq!(summary(&diagnostics[1..2]).as_deref(), Some("1 warning"));
    assert_eq!(summary(&[]), None);
}
