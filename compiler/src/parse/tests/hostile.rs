use std::fmt::Write as _;

use crate::diagnostic::codes;

use super::super::{MAX_ALIAS_NODES, MAX_DEPTH};
use super::run;

/// The first finding for a hostile text.
fn check(path: &str, text: &str) -> String {
    let (_, _, diagnostics) = run(path, text);
    assert!(diagnostics.len() <= 60, "{} findings", diagnostics.len());
    diagnostics.first().map_or_else(String::new, |d| format!("{}: {}", d.code, d.message))
}

#[test]
fn nesting_is_limited() {
    for path in ["job.yaml", "job.json"] {
        let units = ["[", "{a: ", "{\"a\":", "- ", "[[]", "? ", "&a [", "!!seq [", "{\"a\":[", "/*"];
        for unit in units {
            let text = unit.repeat(200_000 / unit.len());
            let output = check(path, &text);
            assert!(output.starts_with('J'), "{path} {unit:?}: {output:?}");
        }
        // Partly valid, partly broken: parsing must end.
        for unit in ["\"", "'", "...", "#", "|", "\\\n"] {
            check(path, &unit.repeat(200_000 / unit.len()));
        }
    }
    assert!(check("job.yaml", &"- ".repeat(200)).starts_with("J0010"));
    assert!(check("job.yaml", &"[".repeat(200)).starts_with("J0010"));
    assert!(check("job.json", &"[".repeat(200)).starts_with("J0010"));
    let deepest = format!("{}{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
    assert_eq!(check("job.yaml", &deepest), "");
    assert_eq!(check("job.json", &deepest), "");
}

#[test]
fn copies_by_aliases_are_limited() {
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..9 {
        let list = vec![format!("*a{}", n - 1); 10].join(", ");
        let _ = writeln!(laughs, "a{n}: &a{n} [{list}]");
    }
    assert!(check("job.yaml", &laughs).starts_with("J0010"));

    let list = vec!["x"; 20_000].join(", ");
    let quadratic = format!("a: &a [{list}]\nb: [{}]\n", vec!["*a"; 20_000].join(", "));
    assert!(check("job.yaml", &quadratic).starts_with("J0010"));

    let text = format!("a: &a \"{}\"\nb: [{}]\n", "x".repeat(500_000), vec!["*a"; 100_000].join(", "));
    assert!(check("job.yaml", &text).starts_with("J0010"));

    // Every alias is a hundred levels deeper than the previous one.
    let mut deep = "a0: &a0 []\n".to_owned();
    for n in 1..2000 {
        let _ = writeln!(deep, "a{n}: &a{n} {}*a{}{}", "[".repeat(100), n - 1, "]".repeat(100));
    }
    assert!(check("job.yaml", &deep).starts_with("J0010"));

    let nested = format!("{}x{}", "&a [".repeat(100), "]".repeat(100));
    assert_eq!(check("job.yaml", &nested), "");
    let honest = format!("a: &a {{x: 1}}\nb: [{}]\n", vec!["*a"; MAX_ALIAS_NODES / 4].join(", "));
    assert_eq!(check("job.yaml", &honest), "");
}

#[test]
fn the_number_of_findings_is_limited() {
    for text in ["[", "{"].map(|open| format!("{open}{}", "y, ".repeat(100_000))) {
        assert!(check("job.yaml", &text).starts_with('J'));
    }
    let (_, _, diagnostics) = run("job.yaml", &format!("a: [{}]", "0777, ".repeat(1000)));
    assert_eq!(diagnostics.len(), 51);
    assert_eq!(diagnostics[50].code, codes::LEADING_ZERO);
    assert_eq!(diagnostics[50].message, "950 more of these are not shown");
}

#[test]
fn large_maps_are_parsed_in_linear_time() {
    let mut text = String::new();
    for n in 0..50_000 {
        let _ = writeln!(text, "role-{n}: {{run: x}}");
    }
    text.push_str("role-7: {}\n");
    assert_eq!(check("job.yaml", &text), "J0002: duplicate key `role-7`");
}
