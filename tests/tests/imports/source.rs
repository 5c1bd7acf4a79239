//! What one file imports: its `use` lines, the paths within its lines, and its words. Code for tests is left out.

use crate::tokens::{Kind, Token, tokens};

/// A path that a file names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    /// Its parts, `crate`, `super` and `self` as they are written; `*` for all of a module.
    pub(crate) path: Vec<String>,
    pub(crate) line: usize,
    /// The modules within the file that it stands in.
    pub(crate) within: Vec<String>,
}

/// What a file says that does not serve tests alone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Source {
    pub(crate) references: Vec<Reference>,
    /// Its words with their lines.
    pub(crate) words: Vec<(String, usize)>,
    /// The modules it declares for tests alone.
    pub(crate) test_modules: Vec<String>,
    /// Whether all of it serves tests.
    pub(crate) only_tests: bool,
}

/// Reads a file.
pub(crate) fn read(text: &str) -> Source {
    let mut source = Source::default();
    let live = without_tests(&tokens(text), &mut source);
    let words = live.iter().filter(|token| token.kind == Kind::Word);
    source.words = words.map(|token| (token.text.to_owned(), token.line)).collect();
    let mut walk = Walk { tokens: &live, at: 0, within: Vec::new(), depth: 0, found: Vec::new() };
    walk.file();
    source.references = walk.found;
    source
}

/// The tokens that are compiled without tests as well.
fn without_tests<'t>(tokens: &[Token<'t>], source: &mut Source) -> Vec<Token<'t>> {
    let mut live = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        let inner = tokens[at].is("#") && tokens.get(at + 1).is_some_and(|token| token.is("!"));
        let open = at + 1 + usize::from(inner);
        if !tokens[at].is("#") || !tokens.get(open).is_some_and(|token| token.is("[")) {
            live.push(tokens[at]);
            at += 1;
            continue;
        }
        let end = closing(tokens, open);
        if !is_for_tests(&tokens[open + 1..end]) {
            live.extend(&tokens[at..=end.min(tokens.len() - 1)]);
            at = end + 1;
        } else if inner {
            source.only_tests = true;
            return vec![];
        } else {
            let after = item_end(tokens, end + 1);
            source.test_modules.extend(declared(&tokens[end + 1..after]));
            at = after;
        }
    }
    live
}

/// The index of the bracket that closes the one at `open`.
fn closing(tokens: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        if token.kind == Kind::Mark {
            match token.text {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                _ => {}
            }
        }
        if depth == 0 {
            return at;
        }
    }
    tokens.len()
}

/// Whether an attribute is a `cfg` that holds in tests alone.
fn is_for_tests(attribute: &[Token<'_>]) -> bool {
    match attribute {
        [cfg, open, predicate @ .., _] if cfg.is("cfg") && open.is("(") => needs_tests(predicate),
        _ => false,
    }
}

fn needs_tests(predicate: &[Token<'_>]) -> bool {
    match predicate {
        [word] => word.is("test"),
        [all, open, parts @ .., _] if open.is("(") => {
            let mut parts = split(parts).into_iter().filter(|part| !part.is_empty());
            match all.text {
                "all" => parts.any(needs_tests),
                "any" => parts.all(needs_tests),
                _ => false,
            }
        }
        _ => false,
    }
}

/// The parts between the outer commas.
fn split<'s, 't>(tokens: &'s [Token<'t>]) -> Vec<&'s [Token<'t>]> {
    let mut parts = Vec::new();
    let (mut start, mut at) = (0, 0);
    while at < tokens.len() {
        if tokens[at].is(",") {
            parts.push(&tokens[start..at]);
            start = at + 1;
        }
        at = if tokens[at].is("(") || tokens[at].is("{") { closing(tokens, at) + 1 } else { at + 1 };
    }
    parts.push(&tokens[start.min(tokens.len())..]);
    parts
}

/// Behind the item, the statement, the field or the variant that begins there.
fn item_end(tokens: &[Token<'_>], start: usize) -> usize {
    let mut at = start;
    while tokens.get(at).is_some_and(|token| token.is("#")) {
        at = closing(tokens, at + 1) + 1;
    }
    let is_use = tokens[at..].iter().take(6).take_while(|token| !token.is("{")).any(|token| token.is("use"));
    let is_item = tokens[at..].iter().take(6).any(|token| ITEMS.iter().any(|word| token.is(word)));
    while at < tokens.len() {
        match tokens[at].text {
            _ if tokens[at].kind != Kind::Mark => at += 1,
            ";" => return at + 1,
            "," if !is_item => return at + 1,
            "}" => return at,
            "{" if !is_use => return closing(tokens, at) + 1,
            "(" | "[" | "{" => at = closing(tokens, at) + 1,
            _ => at += 1,
        }
    }
    at
}

/// Words that an item or a statement begins with.
const ITEMS: [&str; 14] = [
    "fn",
    "mod",
    "use",
    "impl",
    "struct",
    "enum",
    "const",
    "static",
    "type",
    "trait",
    "union",
    "extern",
    "let",
    "macro_rules",
];

/// The module that an item declares without its body.
fn declared(item: &[Token<'_>]) -> Option<String> {
    match item {
        [.., word, name, end] if word.is("mod") && end.is(";") => Some(name.text.to_owned()),
        _ => None,
    }
}

struct Walk<'s, 't> {
    tokens: &'s [Token<'t>],
    at: usize,
    /// The modules with a body around this place, each with the depth of braces outside it.
    within: Vec<(String, usize)>,
    depth: usize,
    found: Vec<Reference>,
}

impl Walk<'_, '_> {
    fn file(&mut self) {
        while let Some(&token) = self.tokens.get(self.at) {
            let next = |by: usize| self.tokens.get(self.at + by);
            match token.kind {
                Kind::Word if token.is("mod") && next(2).is_some_and(|token| token.is("{")) => {
                    let name = self.tokens[self.at + 1].text.to_owned();
                    self.within.push((name, self.depth));
                    self.at += 2;
                }
                Kind::Word if token.is("use") && next(1).is_some_and(|token| !token.is("<")) => {
                    self.at += 1;
                    self.tree(&[]);
                }
                Kind::Word if token.is("pub") && next(1).is_some_and(|token| token.is("(")) => {
                    self.at = closing(self.tokens, self.at + 1) + 1;
                }
                Kind::Word => self.path(),
                Kind::Text => {
                    self.quoted(token);
                    self.at += 1;
                }
                Kind::Mark if token.is("{") => {
                    self.depth += 1;
                    self.at += 1;
                }
                Kind::Mark if token.is("}") => {
                    self.depth = self.depth.saturating_sub(1);
                    self.within.pop_if(|(_, depth)| *depth == self.depth);
                    self.at += 1;
                }
                Kind::Mark | Kind::Colons => self.at += 1,
            }
        }
    }

    /// A tree of imports below a path, up to what ends it.
    fn tree(&mut self, above: &[String]) {
        let mut path = above.to_vec();
        while let Some(&token) = self.tokens.get(self.at) {
            self.at += 1;
            match (token.kind, token.text) {
                (Kind::Word, "as") => self.at += 1,
                (Kind::Word, _) | (Kind::Mark, "*") => {
                    path.push(token.text.to_owned());
                    // What stands before braces is no name by itself.
                    if !self.tokens.get(self.at).is_some_and(|next| next.kind == Kind::Colons) {
                        self.push(path.clone(), token.line);
                    }
                }
                (Kind::Mark, "{") => {
                    while self.tokens.get(self.at).is_some_and(|token| !token.is("}")) {
                        self.tree(&path);
                        if self.tokens.get(self.at).is_some_and(|token| token.is(",")) {
                            self.at += 1;
                        }
                    }
                    self.at += 1;
                }
                (Kind::Mark, "," | "}" | ";") => {
                    self.at -= 1;
                    return;
                }
                _ => {}
            }
        }
    }

    /// A path within a line; a word alone is none.
    fn path(&mut self) {
        let first = self.tokens[self.at];
        let before = self.at.checked_sub(1).map(|at| self.tokens[at]);
        let begins = !before.is_some_and(|token| token.kind == Kind::Colons || token.is("."));
        let mut path = vec![first.text.to_owned()];
        self.at += 1;
        while let [colons, word, ..] = &self.tokens[self.at..]
            && colons.kind == Kind::Colons
            && word.kind == Kind::Word
        {
            path.push(word.text.to_owned());
            self.at += 2;
        }
        if begins && path.len() > 1 {
            self.push(path, first.line);
        }
    }

    /// A path in quotes, as attributes of serde have it.
    fn quoted(&mut self, token: Token<'_>) {
        let path: Vec<String> = token.text.split("::").map(str::to_owned).collect();
        let named = |part: &String| !part.is_empty() && part.chars().all(|c| c == '_' || c.is_alphanumeric());
        let begins = ["crate", "self", "super"].contains(&path[0].as_str());
        if begins && path.len() > 1 && path.iter().all(named) {
            self.push(path, token.line);
        }
    }

    fn push(&mut self, mut path: Vec<String>, line: usize) {
        // `a::{self}` is `a`.
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let within = self.within.iter().map(|(name, _)| name.clone()).collect();
        self.found.push(Reference { path, line, within });
    }
}

#[cfg(test)]
mod tests {
    use super::read;

    fn check(text: &str, expected: &[&str]) {
        let shown: Vec<String> = read(text)
            .references
            .iter()
            .map(|r| {
                let within: String = r.within.iter().map(|name| format!("{name}/")).collect();
                format!("{within}{}:{}", r.path.join("::"), r.line)
            })
            .collect();
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn trees_of_imports_are_taken_apart() {
        check(
            "use a::b;\npub use a::{self, c::{d, e as f},\n g::*};",
            &["a::b:1", "a:2", "a::c::d:2", "a::c::e:2", "a::g::*:3"],
        );
        check("use a; use ::b::c;", &["a:1", "b::c:1"]);
        check("fn f() -> impl Sized + use<'a> { use super::x; x() }", &["super::x:1"]);
    }

    #[test]
    fn paths_within_lines_are_seen() {
        check("fn f() { a::b(c, crate::d::E::new()); }", &["a::b:1", "crate::d::E::new:1"]);
        check("println!(\"{}\", self::a::b());", &["self::a::b:1"]);
        check("x.iter().map(str::len).sum::<a::B>()", &["str::len:1", "a::B:1"]);
        check("pub(in super::super) fn f() {}", &[]);
        check("#[serde(with = \"crate::a::b\")] struct S;", &["crate::a::b:1"]);
        check("mod m { use super::a; fn f() { b::c() } } use d::e;", &["m/super::a:1", "m/b::c:1", "d::e:1"]);
    }

    #[test]
    fn code_for_tests_is_left_out() {
        check("#[cfg(test)] mod t { use a::b; } use c::d;", &["c::d:1"]);
        check("#[cfg(all(test, unix))]\n#[allow(x)]\npub(crate) use a::{b, c}; use d::e;", &["d::e:3"]);
        check("#[cfg(any(test, unix))] use a::b;", &["a::b:1"]);
        check("#[cfg(not(test))] use a::b;", &["a::b:1"]);
        check("struct S { #[cfg(test)] x: a::B, y: c::D } ", &["c::D:1"]);
        check("#[cfg(test)] fn f(x: [u8; 3]) -> a::B { c::d() } fn g() { e::f() }", &["e::f:1"]);
        check("#![cfg(test)] use a::b;", &[]);
        assert_eq!(read("#[cfg(test)]\nmod tests;\nmod other;").test_modules, ["tests"]);
    }
}
