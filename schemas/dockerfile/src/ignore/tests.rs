use super::*;

/// Prints which of the paths a file excludes.
fn check(text: &str, excluded: &[&str], kept: &[&str]) {
    let ignore = Ignore::read(text).unwrap();
    for path in excluded {
        assert!(ignore.excludes(Path::new(path)), "{text:?} should leave out {path}");
    }
    for path in kept {
        assert!(!ignore.excludes(Path::new(path)), "{text:?} should keep {path}");
    }
}

/// Cases in which builders have differed, with the results of moby's patternmatcher.
#[test]
fn excluded_paths() {
    check("", &[], &["a", "a/b"]);
    check("# *\n\n  \n *.log \r\n", &["x.log"], &["a/x.log", "x.logs"]);
    check("a", &["a", "a/b", "a/b/c"], &["b/a", "ab"]);
    check("/a/", &["a", "a/b"], &["b/a"]);
    check("./a/../b", &["b"], &["a"]);
    check("*/x", &["a/x", "a/x/y"], &["x", "a/b/x"]);
    check("**/x", &["x", "a/x", "a/b/x", "a/x/y"], &["ax", "a/bx", "xa"]);
    check("**x", &["x", "ax", "a/bx", "a/x/y"], &["xa"]);
    check("**", &["a", "a/b"], &[]);
    check("a/**", &["a/b", "a/b/c"], &["a", "b"]);
    check("a/**/b", &["a/b", "a/x/b", "a/x/y/b/c"], &["a/xb", "b"]);
    check("**/*.pyc", &["x.pyc", "a/x.pyc"], &["x.pyc.txt"]);
    check("a?c", &["abc", "aéc"], &["a/c", "ac"]);
    check("[a-c]x", &["ax", "cx"], &["dx"]);
    check("[^a]x", &["bx"], &["ax"]);
    check("[z-a]x", &[], &["ax", "zx"]);
    check("[^z-a]x", &["ax"], &["x"]);
    check(r"\#x", &["#x"], &["x"]);
    check(r"a\*", &["a*"], &["ab"]);
    check("a.b+(c)|{d}$^", &["a.b+(c)|{d}$^"], &["axb+(c)|{d}$^"]);
    check("*\n!keep\n", &["a", "a/keep"], &["keep", "keep/x"]);
    check("!keep\n*\n", &["keep"], &[]);
    check("a\n!a/b\na/b/c\n", &["a/x", "a/b/c"], &["a/b/d"]);
    check("**/node_modules\n!**/node_modules/keep\n", &["a/node_modules/x"], &["a/node_modules/keep/y"]);
    check("! a\n", &[], &["a"]);
    check(".\n", &[], &["a"]);
    check("../a\n", &[], &["a"]);
    check("\u{feff}# comment\na\n", &["a"], &["# comment"]);
    check(" # x\n", &["# x"], &[]);
}

#[test]
fn a_directory_is_searched_if_something_in_it_may_be_included() {
    let ignore = Ignore::read("*\n!a/b/c\n!d/*/e\n").unwrap();
    for (directory, expected) in
        [("a", true), ("a/b", true), ("x", false), ("a/x", false), ("d", true), ("d/y", true), ("e", false)]
    {
        assert_eq!(ignore.enters(Path::new(directory)), expected, "{directory}");
    }
    assert!(!Ignore::read("node_modules\n").unwrap().enters(Path::new("node_modules")));
    assert!(Ignore::read("*\n!**/x\n").unwrap().enters(Path::new("any/where")));
}

#[test]
fn malformed_patterns_are_reported_with_their_places() {
    let text = "ok\n  [a\n!\nb\\\n";
    let Refusals(found) = Ignore::read(text).unwrap_err();
    let found: Vec<(&str, &str)> =
        found.iter().map(|refusal| (&text[refusal.span.clone()], refusal.message.as_str())).collect();
    assert_eq!(
        found,
        [
            ("[a", "a `[` of `[a` is not closed, or has nothing in it"),
            ("!", "`!` without a pattern"),
            ("b\\", "`b\\` ends with `\\`"),
        ]
    );
}

#[test]
fn patterns_are_serialized_unchanged() {
    let ignore = Ignore::read("*\n!a b\n").unwrap();
    let text = serde_json::to_string(&ignore).unwrap();
    assert_eq!(text, r#"["*","!a b"]"#);
    let back: Ignore = serde_json::from_str(&text).unwrap();
    assert!(back.excludes(Path::new("x")) && !back.excludes(Path::new("a b")));
    assert!(serde_json::from_str::<Ignore>(r#"["["]"#).is_err());
}
