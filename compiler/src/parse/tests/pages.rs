use super::run;
use crate::diagnostic::Code;

/// The fenced code blocks of a page with their languages.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let fenced = page.split("```").skip(1).step_by(2);
    fenced.map(|block| block.split_once('\n').expect("a block names its language")).collect()
}

/// Each page about a code of this pass shows a text that gets the code, and then one without findings.
#[test]
fn the_examples_of_the_pages_are_correct() {
    for (code, _) in Code::all().filter(|(code, _)| code.as_str().starts_with("J00")) {
        let blocks = blocks(code.page());
        let [(wrong_kind, wrong), (right_kind, right)] = blocks[..] else {
            panic!("{code}: a page has two examples")
        };
        let found = run(&format!("job.{wrong_kind}"), wrong).2;
        assert!(found.iter().any(|d| d.code == code), "{code}: {found:#?}");
        let found = run(&format!("job.{right_kind}"), right).2;
        assert!(found.is_empty(), "{code}: {found:#?}");
    }
}
