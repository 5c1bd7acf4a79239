//! The page of every code of this pass shows a file that produces it, and one without findings.

use crate::diagnostic::{Code, Diagnostic, Sink};

use super::read;

/// The fenced code blocks of a page.
fn blocks(page: &str) -> Vec<&str> {
    let fenced = page.split("```").skip(1).step_by(2);
    fenced.map(|block| block.split_once('\n').expect("a block names its language").1).collect()
}

fn findings(text: &str) -> Vec<Diagnostic> {
    let is_targets = text.contains("\ntargets:");
    let (sources, document) = read(if is_targets { "targets.yaml" } else { "job.yaml" }, text);
    let mut sink = Sink::new();
    if is_targets {
        crate::validate::targets(&document, &mut sink);
    } else if crate::validate::validate(&document, &mut sink) {
        crate::validate::check_written(&document, &sources, &mut sink);
        crate::validate::job(&document, &mut sink);
    }
    sink.finish()
}

#[test]
fn the_examples_of_the_pages_are_correct() {
    let codes: Vec<Code> =
        Code::all().map(|(code, _)| code).filter(|code| code.as_str().starts_with("J01")).collect();
    assert!(codes.len() > 20);
    for code in codes {
        let [wrong, right] = blocks(code.page())[..] else { panic!("{code}: a page has two examples") };
        let found = findings(wrong);
        assert!(found.iter().any(|d| d.code == code), "{code}: {found:#?}");
        let found = findings(right);
        assert!(found.is_empty(), "{code}: {found:#?}");
    }
}
