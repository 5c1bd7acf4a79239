//! Libraries and `unsafe`, which may be used only in certain files.
//!
//! ARCHITECTURE.md has both lists. A place is a file, or a directory that ends with `/`.

use std::collections::BTreeSet;

use crate::page::{item, quoted, table};
use crate::tree::Tree;

/// A library, or a word, with the places that may use it.
#[derive(Debug)]
pub(crate) struct Placement {
    words: Vec<String>,
    places: Vec<String>,
}

/// The libraries that may be used only in certain files.
pub(crate) fn libraries(architecture: &str) -> Vec<Placement> {
    let rows = table(architecture, "| library |");
    let placement = |row: &Vec<&str>| Placement {
        words: quoted(row[0]).map(str::to_owned).collect(),
        places: quoted(row[1]).map(str::to_owned).collect(),
    };
    rows.iter().map(placement).collect()
}

/// Where `unsafe` may be used.
pub(crate) fn of_unsafe(architecture: &str) -> Placement {
    let text = item(architecture, "**`unsafe`");
    let places = quoted(text).filter(|place| place.contains('/')).map(str::to_owned).collect();
    Placement { words: vec!["unsafe".to_owned()], places }
}

/// Where the program may ask for the operating system.
pub(crate) fn of_target_os(architecture: &str) -> Placement {
    let text = item(architecture, "**`target_os`");
    let places = quoted(text).filter(|place| place.contains('/')).map(str::to_owned).collect();
    Placement { words: vec!["target_os".to_owned()], places }
}

impl Placement {
    /// Uses in other places, and places without a use.
    pub(crate) fn check(&self, trees: &[Tree]) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        for file in trees.iter().flat_map(|tree| &tree.files) {
            let mut named = file.source.words.iter().filter(|(word, _)| self.words.contains(word));
            let Some((word, line)) = named.next() else { continue };
            let holds = |place: &&String| match place.strip_suffix('/') {
                Some(_) => file.path.as_str().starts_with(place.as_str()),
                None => file.path == **place,
            };
            match self.places.iter().find(holds) {
                Some(place) => {
                    seen.insert(place);
                }
                None => wrong.push(format!(
                    "{}:{line}: `{word}` stands outside of {}, which ARCHITECTURE.md has",
                    file.path,
                    self.places.join(", ")
                )),
            }
        }
        for place in self.places.iter().filter(|place| !seen.contains(place.as_str())) {
            wrong.push(format!("ARCHITECTURE.md: `{place}` does not name `{}`", self.words.join("` or `")));
        }
        wrong
    }
}

#[cfg(test)]
mod tests {
    use super::{libraries, of_unsafe};
    use crate::tree::Tree;

    const PAGE: &str = "\n| library | place |\n|---|---|\n| a parser: `p_lib` | `a/src/p.rs`, `a/src/q/` |\n\n* **`unsafe` stands** in\n  `a/src/q/`; not\n* in `a/src/p.rs`\n";

    fn tree(extra: &'static str) -> [Tree; 1] {
        let files = [
            ("lib.rs", "mod p; mod q; mod r;"),
            ("p.rs", "use p_lib::X;"),
            ("q.rs", ""),
            ("q/r.rs", "fn f() { unsafe { p_lib::f() } }"),
            ("r.rs", extra),
        ];
        [Tree::new("jobc-a", "a/src".into(), &files)]
    }

    #[test]
    fn a_library_is_used_in_its_place() {
        let check = |extra, expected: &[&str]| assert_eq!(libraries(PAGE)[0].check(&tree(extra)), expected);
        check("// p_lib\nconst S: &str = \"p_lib\"; #[cfg(test)] mod t { use p_lib::X; }", &[]);
        check(
            "\n\nfn f() { p_lib::f() }",
            &["a/src/r.rs:3: `p_lib` stands outside of a/src/p.rs, a/src/q/, which ARCHITECTURE.md has"],
        );
    }

    #[test]
    fn unsafe_is_used_where_it_is_listed() {
        let check = |extra, expected: &[&str]| assert_eq!(of_unsafe(PAGE).check(&tree(extra)), expected);
        check("fn f() -> &'static str { \"unsafe\" } // unsafe", &[]);
        check(
            "fn f() {\n    unsafe { g() }\n}",
            &["a/src/r.rs:2: `unsafe` stands outside of a/src/q/, which ARCHITECTURE.md has"],
        );
    }

    #[test]
    fn an_unneeded_place_is_reported() {
        let page = PAGE.replace("`a/src/q/`;", "`a/src/q/`, `a/src/x.rs`;");
        assert_eq!(
            of_unsafe(&page).check(&tree("")),
            ["ARCHITECTURE.md: `a/src/x.rs` does not name `unsafe`"]
        );
    }
}
