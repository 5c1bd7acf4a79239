//! The page of every code of this pass shows a file that produces it, and one without findings.

use super::plans;
use crate::diagnostic::Code;

/// The first YAML block under a heading.
fn block<'p>(page: &'p str, heading: &str) -> &'p str {
    let section = page.split("\n## ").find_map(|section| section.strip_prefix(heading)).unwrap_or_default();
    let fenced = section.split("```yaml\n").nth(1).unwrap_or_default();
    fenced.split("```").next().unwrap_or_default()
}

#[test]
fn the_examples_of_every_page_are_correct() {
    let mine = Code::all().filter(|(code, _)| ("J0202".."J0280").contains(&code.as_str()));
    let mut wrong = Vec::new();
    for (code, _) in mine {
        let page = code.page();
        let (_, _, found) = plans(block(page, "Example"));
        if found.iter().map(|diagnostic| diagnostic.code).collect::<Vec<_>>() != [code] {
            wrong.push(format!("the example of {code}: {found:#?}"));
        }
        let (_, made, found) = plans(block(page, "Write instead"));
        if made.is_empty() || !found.is_empty() {
            wrong.push(format!("what to write instead of {code}: {found:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
