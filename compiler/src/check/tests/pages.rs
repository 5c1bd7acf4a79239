//! What every page of a lint must have.

use super::{blocks, whole};
use crate::diagnostic::{Code, Sink};
use crate::parse::parse;
use crate::source::{Source, Sources};

#[test]
fn every_page_has_both_examples_and_they_are_yaml() {
    for (code, title) in Code::all().filter(|(code, _)| code.as_str().starts_with("J03")) {
        let page = code.page();
        assert!(page.starts_with(&format!("# {code}: {title}\n\n")), "{code}");
        for heading in ["Example", "Write instead"] {
            let blocks = blocks(page, heading);
            assert!(!blocks.is_empty(), "{code}: {heading}");
            let mut sources = Sources::new();
            let id = sources.add(Source::new("job.yaml", whole(blocks[0])));
            let mut sink = Sink::new();
            parse(&sources, id, &mut sink);
            assert_eq!(sink.diagnostics(), [], "{code}: {heading}");
        }
    }
}
