//! What one file imports: its `use` lines, the paths within its lines, and its words. Code for tests is left out.
//!
//! The tokens are proc-macro2's. A syntax tree would leave what is inside macros as tokens, and many paths stand there.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

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
    /// The modules with a body around the place that is read.
    within: Vec<String>,
}

/// Reads a file.
///
/// # Panics
/// If the text is not Rust.
pub(crate) fn read(text: &str) -> Source {
    let mut source = Source::default();
    source.read(text.parse().expect("the text is Rust"));
    source
}

impl Source {
    fn read(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while !self.only_tests
            && let Some(token) = tokens.get(at)
        {
            at = match &tokens[at..] {
                [hash, bang, attribute, ..] if is(hash, "#") && is(bang, "!") && is_for_tests(attribute) => {
                    *self = Self { only_tests: true, ..Self::default() };
                    return;
                }
                [hash, attribute, ..] if is(hash, "#") && is_for_tests(attribute) => {
                    let end = item_end(&tokens, at + 2);
                    self.test_modules.extend(declared(&tokens[at + 2..end]));
                    end
                }
                [word, name, TokenTree::Group(body), ..]
                    if is(word, "mod") && body.delimiter() == Delimiter::Brace =>
                {
                    self.within.push(name.to_string());
                    self.read(body.stream());
                    self.within.pop();
                    at + 3
                }
                [word, TokenTree::Group(group), ..]
                    if is(word, "pub") && group.delimiter() == Delimiter::Parenthesis =>
                {
                    at + 2
                }
                [word, next, ..] if is(word, "use") && !is(next, "<") => self.tree(&tokens, at + 1, &[]),
                [TokenTree::Ident(_), ..] => self.path(&tokens, at),
                [TokenTree::Group(group), ..] => {
                    self.read(group.stream());
                    at + 1
                }
                [TokenTree::Literal(literal), ..] => {
                    self.quoted(&literal.to_string(), line(token));
                    at + 1
                }
                _ => at + 1,
            };
        }
    }

    /// A tree of imports below a path. Returns where it ends: at a comma or behind the semicolon.
    fn tree(&mut self, tokens: &[TokenTree], mut at: usize, above: &[String]) -> usize {
        let mut path = above.to_vec();
        while let Some(token) = tokens.get(at) {
            match token {
                _ if is(token, ",") => return at,
                _ if is(token, ";") => return at + 1,
                _ if is(token, "as") => at += 1,
                TokenTree::Group(group) => {
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    let mut next = 0;
                    while next < inner.len() {
                        next = self.tree(&inner, next, &path) + 1;
                    }
                }
                TokenTree::Ident(_) | TokenTree::Punct(_) if !is(token, ":") => {
                    path.push(self.word(token));
                    // What stands before braces is not a name by itself.
                    if !is_separator(tokens, at + 1) {
                        self.push(path.clone(), line(token));
                    }
                }
                _ => {}
            }
            at += 1;
        }
        at
    }

    /// A path within a line; a word alone is none. Returns where it ends.
    fn path(&mut self, tokens: &[TokenTree], start: usize) -> usize {
        let (before, mut at) = (&tokens[..start], start + 1);
        let begins = !matches!(before, [.., last] if is(last, ".") || is(last, ":") && is_separator(tokens, start.saturating_sub(2)));
        let mut path = vec![self.word(&tokens[start])];
        while is_separator(tokens, at)
            && let Some(token @ TokenTree::Ident(_)) = tokens.get(at + 2)
        {
            path.push(self.word(token));
            at += 3;
        }
        if begins && path.len() > 1 {
            self.push(path, line(&tokens[start]));
        }
        at
    }

    /// A path in quotes, as attributes of serde have it.
    fn quoted(&mut self, literal: &str, line: usize) {
        let text = literal.trim_matches('"');
        let path: Vec<String> = text.split("::").map(str::to_owned).collect();
        let named = |part: &String| !part.is_empty() && part.chars().all(|c| c == '_' || c.is_alphanumeric());
        let begins = ["crate", "self", "super"].contains(&path[0].as_str());
        if begins && path.len() > 1 && path.iter().all(named) {
            self.push(path, line);
        }
    }

    fn word(&mut self, token: &TokenTree) -> String {
        let text = token.to_string();
        let text = text.strip_prefix("r#").unwrap_or(&text);
        self.words.push((text.to_owned(), line(token)));
        text.to_owned()
    }

    fn push(&mut self, mut path: Vec<String>, line: usize) {
        // `a::{self}` is `a`.
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        self.references.push(Reference { path, line, within: self.within.clone() });
    }
}

fn line(token: &TokenTree) -> usize {
    token.span().start().line
}

/// Whether a token is this word or mark.
fn is(token: &TokenTree, text: &str) -> bool {
    match token {
        TokenTree::Ident(word) => word == text,
        TokenTree::Punct(mark) => text.len() == 1 && text.starts_with(mark.as_char()),
        TokenTree::Group(_) | TokenTree::Literal(_) => false,
    }
}

/// Whether `::` stands there.
fn is_separator(tokens: &[TokenTree], at: usize) -> bool {
    matches!(&tokens[at.min(tokens.len())..], [TokenTree::Punct(first), second, ..]
        if first.as_char() == ':' && first.spacing() == Spacing::Joint && is(second, ":"))
}

/// Whether the brackets of an attribute hold a `cfg` that holds in tests alone.
fn is_for_tests(attribute: &TokenTree) -> bool {
    let TokenTree::Group(group) = attribute else { return false };
    match &group.stream().into_iter().collect::<Vec<_>>()[..] {
        [cfg, TokenTree::Group(predicate)] if is(cfg, "cfg") => needs_tests(predicate.stream()),
        _ => false,
    }
}

fn needs_tests(predicate: TokenStream) -> bool {
    match &predicate.into_iter().collect::<Vec<_>>()[..] {
        [word] => is(word, "test"),
        [name, TokenTree::Group(parts)] => {
            let tokens: Vec<TokenTree> = parts.stream().into_iter().collect();
            let parts = tokens.split(|token| is(token, ",")).filter(|part| !part.is_empty());
            let mut parts = parts.map(|part| needs_tests(part.iter().cloned().collect()));
            is(name, "all") && parts.any(|needs| needs) || is(name, "any") && parts.all(|needs| needs)
        }
        _ => false,
    }
}

/// Behind the item, the statement, the field or the variant that begins there.
fn item_end(tokens: &[TokenTree], mut at: usize) -> usize {
    while tokens.get(at).is_some_and(|token| is(token, "#")) {
        at += 2;
    }
    let begins = |words: &[&str]| {
        let first = tokens[at..].iter().take(6).take_while(|token| !is_braced(token));
        first.into_iter().any(|token| words.iter().any(|word| is(token, word)))
    };
    let (is_use, is_item) = (begins(&["use"]), begins(&ITEMS));
    while let Some(token) = tokens.get(at) {
        at += 1;
        if is(token, ";") || is(token, ",") && !is_item || is_braced(token) && !is_use {
            break;
        }
    }
    at
}

fn is_braced(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
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
fn declared(item: &[TokenTree]) -> Option<String> {
    match item {
        [.., word, name, end] if is(word, "mod") && is(end, ";") => Some(name.to_string()),
        _ => None,
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
    fn comments_strings_and_characters_hide_nothing() {
        check(
            "use a::b; // use c::d\n/* use /* e::f */ */ fn f() { g::h(\"use i::j \\\" k::l\", 'u', '\\'') }",
            &["a::b:1", "g::h:2"],
        );
        check(
            "fn f() { a::b(r#\"c::d\"e\"#, r#type, b'\"', c\"f::g\") }\n\n fn g<'a>(x: &'a h::I) {}",
            &["a::b:1", "h::I:3"],
        );
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
        check("mod m { #![cfg(test)] use a::b; } use c::d;", &[]);
        assert_eq!(read("#[cfg(test)]\nmod tests;\nmod other;").test_modules, ["tests"]);
    }
}
