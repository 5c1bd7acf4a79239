//! Import cycles that remain, and those that are too large.
//!
//! No cycle may span the top-level modules of a crate, or sibling modules of which one has a directory; within a
//! directory at most [`MAX_CYCLE_LENGTH`] files may import each other.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::tree::Tree;

/// Files that may import each other in a cycle, where they lie in one directory.
const MAX_CYCLE_LENGTH: usize = 3;

/// Imports between any things with names, each with one that shows it.
type Graph<'t> = BTreeMap<&'t str, BTreeMap<&'t str, (usize, usize)>>;

/// The import cycles of a crate, each with one path around it.
pub(crate) fn cycles(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for parent in parents(tree) {
        let root = parent.is_empty();
        let graph = siblings(tree, parent);
        for cycle in components(&graph) {
            let directory = |name: &&str| tree.files.iter().any(|file| is_below(&file.module, parent, name));
            let mut ties = cycle.iter().filter(|name| directory(name));
            if !root && ties.next().is_none() {
                continue;
            }
            let place =
                if root { "the top of the crate".to_owned() } else { format!("`{}`", parent.join("::")) };
            let what = format!("{}: the modules {} at {place} import each other", tree.name, listed(&cycle));
            found.push(described(tree, what, &graph, &cycle));
        }
    }
    let mut graph = Graph::new();
    for pair @ (from, to) in tree.imports.keys() {
        graph
            .entry(tree.files[*from].path.as_str())
            .or_default()
            .insert(tree.files[*to].path.as_str(), *pair);
    }
    for cycle in components(&graph).into_iter().filter(|cycle| cycle.len() > MAX_CYCLE_LENGTH) {
        let what = format!("{}: {} files import each other: {}", tree.name, cycle.len(), listed(&cycle));
        found.push(described(tree, what, &graph, &cycle));
    }
    found
}

/// The modules that have modules below them, the crate's root first.
fn parents(tree: &Tree) -> BTreeSet<&[String]> {
    tree.files.iter().flat_map(|file| (0..file.module.len()).map(|end| &file.module[..end])).collect()
}

/// Whether a module lies below `name`, which lies below `parent`.
fn is_below(module: &[String], parent: &[String], name: &str) -> bool {
    module.strip_prefix(parent).is_some_and(|rest| rest.len() > 1 && rest[0] == name)
}

/// Which of the modules below one import each other; at the crate's root that is one of them, by the name `crate`.
fn siblings<'t>(tree: &'t Tree, parent: &[String]) -> Graph<'t> {
    let child = |file: usize| -> Option<&'t str> {
        let module = &tree.files[file].module;
        match module.strip_prefix(parent)? {
            [first, ..] => Some(first.as_str()),
            [] => parent.is_empty().then_some("crate"),
        }
    };
    let mut graph = Graph::new();
    for pair @ (from, to) in tree.imports.keys() {
        if let (Some(from), Some(to)) = (child(*from), child(*to))
            && from != to
        {
            graph.entry(from).or_default().entry(to).or_insert(*pair);
        }
    }
    graph
}

/// The names that reach each other, in groups of two or more.
fn components<'t>(graph: &Graph<'t>) -> Vec<BTreeSet<&'t str>> {
    let mut left: BTreeSet<&'t str> = graph.keys().copied().collect();
    // What imports nothing that is left is on no cycle, and soon all is gone where there is none.
    loop {
        let inner: BTreeSet<&'t str> =
            left.iter().copied().filter(|from| graph[from].keys().any(|to| left.contains(to))).collect();
        if inner.len() == left.len() {
            break;
        }
        left = inner;
    }
    let mut turned = Graph::new();
    for (from, all) in graph {
        for (to, pair) in all {
            turned.entry(*to).or_default().insert(*from, *pair);
        }
    }
    let mut found: Vec<BTreeSet<&'t str>> = Vec::new();
    while let Some(from) = left.pop_first() {
        let cycle: BTreeSet<&str> = reach(graph, from).intersection(&reach(&turned, from)).copied().collect();
        if !cycle.is_empty() {
            left.retain(|name| !cycle.contains(name));
            found.push(cycle);
        }
    }
    found
}

/// Everything that a name imports, directly or through others.
fn reach<'t>(graph: &Graph<'t>, from: &'t str) -> BTreeSet<&'t str> {
    let mut found = BTreeSet::new();
    let mut todo = vec![from];
    while let Some(next) = todo.pop() {
        todo.extend(
            graph.get(next).into_iter().flat_map(BTreeMap::keys).copied().filter(|to| found.insert(*to)),
        );
    }
    found
}

/// A line for the cycle, and one for each import on the shortest path around it.
fn described(tree: &Tree, what: String, graph: &Graph<'_>, cycle: &BTreeSet<&str>) -> String {
    let ways = cycle.iter().filter_map(|from| path_back(graph, from));
    let directory = |file: usize| tree.files[file].path.parent();
    // A way that leaves a directory is rather the mistake than two files of one that know each other.
    let stays = |way: &Vec<(usize, usize)>| way.iter().all(|(from, to)| directory(*from) == directory(*to));
    let way = ways.min_by_key(|way| (stays(way), way.len())).unwrap_or_default();
    way.iter().fold(what, |text, (from, to)| {
        let import = &tree.imports[&(*from, *to)];
        let names: Vec<&str> = import.names.iter().map(String::as_str).collect();
        let (from, to) = (&tree.files[*from].path, &tree.files[*to].path);
        format!("{text}\n  {from}:{} -> {to}: {}", import.line, names.join(", "))
    })
}

/// The shortest way from a name back to it.
fn path_back(graph: &Graph<'_>, from: &str) -> Option<Vec<(usize, usize)>> {
    let mut ways: BTreeMap<&str, Vec<(usize, usize)>> = BTreeMap::new();
    let mut todo = VecDeque::from([(from, vec![])]);
    while let Some((next, way)) = todo.pop_front() {
        for (to, pair) in graph.get(next).into_iter().flatten() {
            let longer = || way.iter().copied().chain([*pair]).collect::<Vec<_>>();
            if *to == from {
                return Some(longer());
            }
            if !ways.contains_key(to) {
                ways.insert(to, longer());
                todo.push_back((to, longer()));
            }
        }
    }
    None
}

fn listed(names: &BTreeSet<&str>) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::cycles;
    use crate::tree::Tree;

    fn check(files: &[(&str, &str)], expected: &[&str]) {
        assert_eq!(cycles(&Tree::new("jobc-a", "a/src".into(), files)), expected, "{files:?}");
    }

    #[test]
    fn top_level_modules_form_no_cycle() {
        check(&[("lib.rs", "mod b; mod c;"), ("b.rs", "use crate::c::C;"), ("c.rs", "")], &[]);
        check(
            &[
                ("lib.rs", "mod b; mod c;"),
                ("b.rs", "use crate::c::C;"),
                ("c.rs", "mod d;"),
                ("c/d.rs", "\nuse crate::b::{B, E};"),
            ],
            &[
                "jobc-a: the modules `b`, `c` at the top of the crate import each other\n  a/src/b.rs:1 -> a/src/c.rs: C\n  a/src/c/d.rs:2 -> a/src/b.rs: B, E",
            ],
        );
    }

    #[test]
    fn the_root_of_the_crate_is_one_of_them() {
        check(
            &[("main.rs", "mod b;\nstruct S;\nfn main() { b::run() }"), ("b.rs", "use crate::S;")],
            &[
                "jobc-a: the modules `b`, `crate` at the top of the crate import each other\n  a/src/b.rs:1 -> a/src/main.rs: S\n  a/src/main.rs:3 -> a/src/b.rs: run",
            ],
        );
    }

    #[test]
    fn a_path_within_a_line_closes_a_cycle() {
        check(
            &[
                ("lib.rs", "mod b; mod c;"),
                ("b.rs", "use crate::c::C;"),
                ("c.rs", "fn f() {\n    format!(\"{}\", crate::b::g());\n}"),
            ],
            &[
                "jobc-a: the modules `b`, `c` at the top of the crate import each other\n  a/src/b.rs:1 -> a/src/c.rs: C\n  a/src/c.rs:2 -> a/src/b.rs: g",
            ],
        );
    }

    #[test]
    fn directories_side_by_side_form_no_cycle() {
        let files = |inner: &'static str| {
            [
                ("lib.rs", "mod p;"),
                ("p.rs", "mod b; mod c;"),
                ("p/b.rs", "use super::c;"),
                ("p/c.rs", inner),
                ("p/c/d.rs", "use super::super::b::B;"),
            ]
        };
        check(
            &files("mod d;"),
            &[
                "jobc-a: the modules `b`, `c` at `p` import each other\n  a/src/p/b.rs:1 -> a/src/p/c.rs: self\n  a/src/p/c/d.rs:1 -> a/src/p/b.rs: B",
            ],
        );
        check(&files("#[cfg(test)] mod d;"), &[]);
    }

    #[test]
    fn few_files_of_a_directory_may_import_each_other() {
        let four = [
            ("lib.rs", "mod p;"),
            ("p.rs", "mod b; mod c; mod d; mod e;"),
            ("p/b.rs", "use super::c;"),
            ("p/c.rs", "use super::d;"),
        ];
        let three: Vec<_> =
            four.into_iter().chain([("p/d.rs", "use super::b::B;"), ("p/e.rs", "")]).collect();
        check(&three, &[]);
        let four: Vec<_> =
            four.into_iter().chain([("p/d.rs", "use super::e;"), ("p/e.rs", "use super::b::B;")]).collect();
        check(
            &four,
            &[
                "jobc-a: 4 files import each other: `a/src/p/b.rs`, `a/src/p/c.rs`, `a/src/p/d.rs`, `a/src/p/e.rs`\n  a/src/p/b.rs:1 -> a/src/p/c.rs: self\n  a/src/p/c.rs:1 -> a/src/p/d.rs: self\n  a/src/p/d.rs:1 -> a/src/p/e.rs: self\n  a/src/p/e.rs:1 -> a/src/p/b.rs: B",
            ],
        );
    }

    #[test]
    fn a_parent_and_its_children_count_as_files() {
        let files = |calls: &'static str| {
            [
                ("lib.rs", "mod p;"),
                ("p.rs", calls),
                ("p/b.rs", "use super::X;"),
                ("p/c.rs", "use super::X;"),
                ("p/d.rs", "use super::X;"),
            ]
        };
        check(&files("mod b; mod c; mod d; fn f() { b::f(); c::f(); }"), &[]);
        let found = cycles(&Tree::new(
            "jobc-a",
            "a/src".into(),
            &files("mod b; mod c; mod d; fn f() { b::f(); c::f(); d::f() }"),
        ));
        assert!(found[0].starts_with("jobc-a: 4 files import each other"), "{found:?}");
    }
}
