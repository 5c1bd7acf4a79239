use insta::assert_snapshot;

use super::*;
use crate::build::overlay::mount_layers;

/// The files that a source names in a directory; `->` in a name creates a link.
fn check(files: &[&str], ignore: &str, exclude: &[&str], source: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    for file in files {
        let (name, link) = file.split_once(" -> ").map_or((*file, None), |(name, link)| (name, Some(link)));
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        match link {
            Some(link) => std::os::unix::fs::symlink(link, &path).unwrap(),
            None if name.ends_with('/') => std::fs::create_dir_all(&path).unwrap(),
            None => std::fs::write(&path, name).unwrap(),
        }
    }
    let tree = mount_layers(&[directory.path().to_owned()], None).unwrap();
    let ignore = Ignore::read(ignore).expect("patterns");
    let exclude = Ignore::of(exclude.iter().copied()).expect("patterns");
    match find(&tree, source, &ignore, false) {
        Err(error) => format!("{}: {error}\n", error.kind()),
        Ok(found) => found
            .into_iter()
            .filter_map(|mut found| found.exclude(&exclude).then_some(found))
            .map(|found| {
                let entries: Vec<String> =
                    found.entries[1..].iter().map(|entry| entry.path.display().to_string()).collect();
                let kind = if found.is_directory() { "directory" } else { "file" };
                let line = format!("{} ({kind}): {}", found.path.display(), entries.join(" "));
                format!("{}\n", line.trim_end())
            })
            .collect(),
    }
}

const FILES: [&str; 7] = ["a.txt", "b.md", "src/main.c", "src/sub/x.c", "src/sub/y.h", "docs/b.md", "empty/"];

#[test]
fn a_directory_has_all_that_is_below_it_in_order() {
    assert_snapshot!(check(&FILES, "", &[], "src"), @"src (directory): main.c sub sub/x.c sub/y.h");
    assert_snapshot!(check(&FILES, "", &[], "./src/sub/../main.c"), @"src/main.c (file):");
    assert_snapshot!(check(&FILES, "", &[], "."), @" (directory): a.txt b.md docs docs/b.md empty src src/main.c src/sub src/sub/x.c src/sub/y.h");
}

#[test]
fn a_pattern_matches_between_slashes() {
    assert_snapshot!(check(&FILES, "", &[], "*.txt"), @"a.txt (file):");
    assert_snapshot!(check(&FILES, "", &[], "*/*.md"), @"docs/b.md (file):");
    assert_snapshot!(check(&FILES, "", &[], "s?c/[m-s]*"), @r"
    src/main.c (file):
    src/sub (directory): x.c y.h
    ");
    assert_eq!(check(&FILES, "", &[], "*.none"), "");
    assert_snapshot!(check(&FILES, "", &[], "none"), @"entity not found: No such file or directory (os error 2)");
}

#[test]
fn what_is_left_out_is_not_there() {
    assert_snapshot!(check(&FILES, "*.txt\nsrc/sub\n", &[], "."), @" (directory): b.md docs docs/b.md empty src src/main.c");
    assert_snapshot!(check(&FILES, "src\n!src/sub/*.h\n", &[], "."), @" (directory): a.txt b.md docs docs/b.md empty src src/sub src/sub/y.h");
    assert_snapshot!(check(&FILES, "a.txt\n", &[], "a.txt"), @"entity not found: entity not found");
    assert_snapshot!(check(&FILES, "a.txt\n", &[], "*"), @r"
    b.md (file):
    docs (directory): b.md
    empty (directory):
    src (directory): main.c sub sub/x.c sub/y.h
    ");
}

#[test]
fn exclusions_are_relative_to_the_source() {
    assert_snapshot!(check(&FILES, "", &["sub", "!sub/*.h"], "src"), @"src (directory): main.c sub sub/y.h");
    assert_eq!(check(&FILES, "", &["*.md"], "docs/b.md"), "");
}

#[test]
fn no_link_leads_out() {
    let files = [
        "out -> /etc",
        "up -> ../../../etc/passwd",
        "inside -> src/main.c",
        "src/main.c",
        "dir -> src",
        "passwd",
    ];
    // Inside, /etc would be a directory of the context, and there is none.
    assert_snapshot!(check(&files, "", &[], "out/passwd"), @"entity not found: No such file or directory (os error 2)");
    assert_snapshot!(check(&files, "", &[], "up"), @"entity not found: No such file or directory (os error 2)");
    assert_snapshot!(check(&files, "", &[], "inside"), @"inside (file):");
    assert_snapshot!(check(&files, "", &[], "dir"), @"dir (directory): main.c");
    assert_snapshot!(check(&files, "", &[], "../../passwd"), @"passwd (file):");
    assert_snapshot!(check(&files, "", &[], "."), @" (directory): dir inside out passwd src src/main.c up");
}

#[test]
fn a_loop_of_links_is_an_error() {
    assert_snapshot!(check(&["a -> b", "b -> a"], "", &[], "a"), @"filesystem loop or indirection limit (e.g. symlink loop): Too many levels of symbolic links (os error 40)");
}

/// The files that a source names with `--parents`: each path, and the directories that the target gets with it.
fn check_parents(source: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    for file in ["a/x.txt", "a/b/c/x.txt", "a/b/y.txt", "z/x.txt"] {
        let path = directory.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, file).unwrap();
    }
    let tree = mount_layers(&[directory.path().to_owned()], None).unwrap();
    let found = find(&tree, source, &Ignore::default(), true).unwrap();
    let lines = found.iter().map(|found| {
        let parents: Vec<String> =
            found.parents.iter().map(|entry| entry.path.display().to_string()).collect();
        format!("{} below `{}`: {}\n", found.path.display(), found.pivot().display(), parents.join(" "))
    });
    lines.collect()
}

#[test]
fn parents_begin_at_the_pivot() {
    assert_snapshot!(check_parents("a/b/c"), @"a/b/c below ``: a a/b a/b/c");
    assert_snapshot!(check_parents("./a/b/y.txt"), @"a/b/y.txt below ``: a a/b");
    assert_snapshot!(check_parents("a/./b/c/x.txt"), @"a/b/c/x.txt below `a`: b b/c");
    assert_snapshot!(check_parents("a/b/./y.txt"), @"a/b/y.txt below `a/b`:");
    assert_snapshot!(check_parents("./*/./b/c"), @"a/b/c below `a`: b b/c");
}

#[test]
fn two_asterisks_match_any_number_of_directories() {
    assert_snapshot!(check_parents("**/x.txt"), @r"
    a/b/c/x.txt below ``: a a/b a/b/c
    a/x.txt below ``: a
    z/x.txt below ``: z
    ");
    assert_snapshot!(check_parents("a/./**/**/x.txt"), @r"
    a/b/c/x.txt below `a`: b b/c
    a/x.txt below `a`:
    ");
    assert_snapshot!(check_parents("a/**"), @r"
    a/b below ``: a a/b
    a/x.txt below ``: a
    ");
}
