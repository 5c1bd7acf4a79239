use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::super::patch::patch;
use super::run;

const JOB: &str = "version: 1
name: demo
# everything
image: {from: \"a:1\",
  python: {packages: [x]}}
params:
  lr: 0.1
env:
  A:

roles:
  prepare:
    run: |
      echo a
        b

      c
  train:   # the work
    needs: [prepare]
    env:
      A: 'b
        c'
      B:
    files:
    - path: /a
      text: >-
        d
    resources:
      gpu: {count: 1}
  é:
    run: 名前
distributed:
  roles: [train]
";
const FLAT: &str = "a:\n  b:\n  c: d\ne: f\n  g\nh:\n- i\n- j: k\n  l:\n    m: nn\no: \"p\n  q\"";
const CRLF: &str = "a:\r\n  b: c\r\n  d:\r\n    e: f\r\n\r\ng: h\r\n";
const SHARED: &str = "a: &x\n  b: c\nd:\n  e: f\ng: *x\nh: i\n";

const PIECES: [&str; 30] = [
    "x",
    "{",
    "}",
    "[",
    "]",
    ":",
    ": ",
    ", ",
    "\"",
    "'",
    "\n",
    "\r\n",
    " ",
    "  ",
    "    ",
    "\t",
    "#",
    " #",
    "- ",
    "|\n",
    ">-",
    "&a ",
    "*a",
    "yes",
    "---\n",
    "...\n",
    "\n  new:\n    run: z",
    "\n  train: {}",
    "é",
    "~",
];

/// Prints a text before and after an edit.
fn edited() -> impl Strategy<Value = (String, String)> {
    let seeds = [JOB, JOB, JOB, FLAT, CRLF, SHARED];
    let edit = (any::<prop::sample::Index>(), 0_usize..6, prop::sample::select(&PIECES[..]), any::<bool>());
    (prop::sample::select(seeds.to_vec()), edit).prop_map(|(seed, (at, cut, piece, cuts))| {
        let mut chars: Vec<char> = seed.chars().collect();
        let at = at.index(chars.len() + 1);
        let end = if cuts { (at + cut).min(chars.len()) } else { at };
        chars.splice(at..end, piece.chars());
        (seed.to_owned(), chars.into_iter().collect())
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 3000,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(2),
        ..ProptestConfig::default()
    })]

    /// A patched tree equals the tree of the new text.
    #[test]
    fn a_patched_tree_is_that_of_the_text((old, new) in edited()) {
        let (_, before, findings) = run("a.yaml", &old);
        prop_assert!(findings.is_empty());
        let mut document = before.clone().expect("a seed has a tree");
        if patch(&mut document, &old, &new) {
            let (_, after, findings) = run("a.yaml", &new);
            prop_assert!(findings.is_empty(), "{findings:#?}");
            prop_assert_eq!(Some(document), after);
        } else {
            prop_assert_eq!(Some(document), before, "it stays as it was");
        }
    }
}

#[test]
fn edits_of_values_do_not_parse_the_whole_text() {
    let check = |old: &str, from: &str, to: &str, patched: bool| {
        let new = old.replacen(from, to, 1);
        let (_, document, _) = run("a.yaml", old);
        let mut document = document.expect("a tree");
        assert_eq!(patch(&mut document, old, &new), patched, "{from} -> {to}");
    };
    check(JOB, "echo a", "echo abc", true);
    check(JOB, "[prepare]", "[prepare, other]", true);
    check(JOB, "count: 1", "count: 2", true);
    check(JOB, "      c\n", "      c\n    timeout: 2h\n", true);
    check(JOB, "run: 名前", "run: 名前\n  eval:\n    run: x", true);
    check(JOB, "run: 名前", "run: 名前\n  train:\n    run: x", false);
    check(JOB, "echo a", "echo &a", true);
    check(JOB, "'b", "&a 'b", false);
    check(JOB, "[prepare]", "[prepare", false);
    check(JOB, "train:", "trains:", true);
    check(JOB, "version:", "versions:", false);
    check(SHARED, "e: f", "e: ff", false);
    check("{\"a\": {\"b\": 1}}", "1", "2", false);
}
