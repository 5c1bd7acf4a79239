//! The files of one crate, and which of them imports which.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use jobc_tests::entries;

use crate::source::{Reference, Source, read};

/// A file of a crate that does not serve tests alone.
#[derive(Debug)]
pub(crate) struct File {
    /// From the root of the workspace.
    pub(crate) path: Utf8PathBuf,
    /// The module it is: empty for the root of the crate.
    pub(crate) module: Vec<String>,
    /// Whether it is a program of the crate beside the library.
    program: bool,
    pub(crate) source: Source,
}

/// Where one file imports another: a line, and the names it takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Import {
    pub(crate) line: usize,
    pub(crate) names: BTreeSet<String>,
}

/// A crate.
#[derive(Debug)]
pub(crate) struct Tree {
    /// The package's name.
    pub(crate) name: String,
    pub(crate) files: Vec<File>,
    /// The imports by the numbers of two files: who imports, and what is imported.
    pub(crate) imports: BTreeMap<(usize, usize), Import>,
}

impl Tree {
    /// Reads the crate whose manifest lies in a directory below the workspace.
    pub(crate) fn load(name: &str, workspace: &Utf8Path, directory: &Utf8Path) -> Self {
        let source = workspace.join(directory).join("src");
        let mut files = Vec::new();
        let mut todo = vec![source.clone()];
        while let Some(next) = todo.pop() {
            for path in entries(&next) {
                if path.is_dir() {
                    todo.push(path);
                } else if path.extension() == Some("rs") {
                    let text = std::fs::read_to_string(&path).expect("source is text");
                    files.push((path.strip_prefix(&source).expect("it lies below").to_owned(), text));
                }
            }
        }
        files.sort();
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        Self::new(name, &directory.join("src"), &files)
    }

    /// A crate of these files, by their paths below `source`.
    pub(crate) fn new(name: &str, source: &Utf8Path, files: &[(&str, &str)]) -> Self {
        let library = files.iter().any(|(path, _)| *path == "lib.rs");
        let all = files.iter().map(|(path, text)| File {
            path: source.join(path),
            module: module(path),
            program: path.starts_with("bin/") || (library && *path == "main.rs"),
            source: read(text),
        });
        let mut files: Vec<File> = all.collect();
        let for_tests: BTreeSet<Vec<String>> = files
            .iter()
            .flat_map(|file| file.source.test_modules.iter().map(|name| joined(&file.module, name)))
            .chain(files.iter().filter(|file| file.source.only_tests).map(|file| file.module.clone()))
            .collect();
        files.retain(|file| !(0..=file.module.len()).any(|end| for_tests.contains(&file.module[..end])));
        let mut tree = Self { name: name.to_owned(), files, imports: BTreeMap::new() };
        tree.imports = tree.find_imports();
        tree
    }

    /// The crate's name as a path begins with it.
    pub(crate) fn library(&self) -> String {
        self.name.replace('-', "_")
    }

    fn find_imports(&self) -> BTreeMap<(usize, usize), Import> {
        let library = self.library();
        let modules: BTreeMap<&[String], usize> = self
            .files
            .iter()
            .enumerate()
            .filter(|(_, file)| !file.program)
            .map(|(at, file)| (&file.module[..], at))
            .collect();
        let mut imports: BTreeMap<(usize, usize), Import> = BTreeMap::new();
        for (at, file) in self.files.iter().enumerate() {
            // What `use module::*` brings in, a path may begin with.
            let globs: Vec<Vec<String>> = file
                .source
                .references
                .iter()
                .filter(|reference| reference.path.last().is_some_and(|last| last == "*"))
                .filter_map(|reference| absolute(file, reference, &library, &modules, &[]))
                .map(|path| path[..path.len() - 1].to_vec())
                .collect();
            for reference in &file.source.references {
                let Some(path) = absolute(file, reference, &library, &modules, &globs) else { continue };
                let found = (0..=path.len()).rev().find_map(|end| Some((*modules.get(&path[..end])?, end)));
                let Some((target, end)) = found.filter(|(target, _)| *target != at) else { continue };
                let name = path.get(end).cloned().unwrap_or_else(|| "self".to_owned());
                let import = imports.entry((at, target)).or_default();
                import.line = if import.line == 0 { reference.line } else { import.line.min(reference.line) };
                import.names.insert(name);
            }
        }
        imports
    }
}

/// A path from the root of the crate; nothing where it leads out of it, or is no path of modules.
fn absolute(
    file: &File,
    reference: &Reference,
    library: &str,
    modules: &BTreeMap<&[String], usize>,
    globs: &[Vec<String>],
) -> Option<Vec<String>> {
    let here: Vec<String> = file.module.iter().chain(&reference.within).cloned().collect();
    let mut path = reference.path.iter().peekable();
    let mut base = match path.peek()?.as_str() {
        "crate" if file.program => return None,
        "crate" => {
            path.next();
            vec![]
        }
        "self" | "super" => {
            let mut base = here;
            while let Some(step) = path.next_if(|step| *step == "self" || *step == "super") {
                if step == "super" {
                    base.pop();
                }
            }
            base
        }
        first if first == library && file.program => {
            path.next();
            vec![]
        }
        first => {
            let holds = |module: &&Vec<String>| modules.contains_key(&joined(module, first)[..]);
            std::iter::once(&here).chain(globs).find(holds)?.clone()
        }
    };
    base.extend(path.cloned());
    Some(base)
}

/// The module that a file below `src` is.
fn module(path: &str) -> Vec<String> {
    let path = path.trim_end_matches(".rs");
    let mut parts: Vec<String> = path.split('/').map(str::to_owned).collect();
    if matches!(parts.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        parts.pop();
    }
    parts
}

fn joined(module: &[String], name: &str) -> Vec<String> {
    module.iter().cloned().chain([name.to_owned()]).collect()
}

#[cfg(test)]
mod tests {
    use super::Tree;

    fn check(files: &[(&str, &str)], expected: &[&str]) {
        let tree = Tree::new("jobc-a", "a/src".into(), files);
        let mut shown: Vec<String> = tree
            .imports
            .iter()
            .map(|((from, to), import)| {
                let names: Vec<&str> = import.names.iter().map(String::as_str).collect();
                format!(
                    "{}:{} -> {}: {}",
                    tree.files[*from].path,
                    import.line,
                    tree.files[*to].path,
                    names.join(", ")
                )
            })
            .collect();
        shown.sort();
        assert_eq!(shown, expected, "{files:?}");
    }

    #[test]
    fn a_path_is_the_file_of_its_module() {
        check(
            &[
                ("lib.rs", "mod a; mod b;\nfn f() { a::g() }"),
                ("a.rs", "mod c;\nuse super::b::{B, C};"),
                ("a/c.rs", "\n\nuse crate::X;"),
                ("b.rs", "fn g() { crate::a::c::D::new(); std::mem::drop(1) }"),
            ],
            &[
                "a/src/a.rs:2 -> a/src/b.rs: B, C",
                "a/src/a/c.rs:3 -> a/src/lib.rs: X",
                "a/src/b.rs:1 -> a/src/a/c.rs: D",
                "a/src/lib.rs:2 -> a/src/a.rs: g",
            ],
        );
    }

    #[test]
    fn modules_within_files_and_all_of_a_module_count() {
        check(
            &[
                ("lib.rs", "pub mod a; pub mod b;"),
                ("a.rs", "mod m { use super::super::b; use super::X; }"),
                ("b.rs", "use crate::*;\nfn f() { a::g() }"),
            ],
            &[
                "a/src/a.rs:1 -> a/src/b.rs: self",
                "a/src/b.rs:1 -> a/src/lib.rs: *",
                "a/src/b.rs:2 -> a/src/a.rs: g",
            ],
        );
    }

    #[test]
    fn tests_are_no_part_and_programs_use_the_library() {
        check(
            &[
                ("lib.rs", "#[cfg(test)] mod tests; pub mod a;"),
                ("tests.rs", "use super::a;"),
                ("tests/b.rs", "use crate::a::B;"),
                ("a.rs", ""),
                ("main.rs", "use jobc_a::a::B; use crate::C;"),
            ],
            &["a/src/main.rs:1 -> a/src/a.rs: B"],
        );
    }
}
