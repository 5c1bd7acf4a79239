//! A backend uses the plan, and nothing of another backend or of the job file.

use crate::tree::Tree;

/// What the backends of the compiler import that they must not.
pub(crate) fn backends(tree: &Tree) -> Vec<String> {
    let backend = |file: usize| match &tree.files[file].module[..] {
        [first, name, ..] if first == "backends" => Some(name.as_str()),
        _ => None,
    };
    let mut wrong = Vec::new();
    for ((from, to), import) in &tree.imports {
        let Some(own) = backend(*from) else { continue };
        let (file, imported) = (&tree.files[*from].path, &tree.files[*to]);
        let place = format!("{file}:{} -> {}", import.line, imported.path);
        match backend(*to) {
            Some(other) if other != own => {
                wrong.push(format!("{place}: the backend `{own}` must not use the backend `{other}`"));
            }
            _ if imported.module.first().is_some_and(|first| first == "document") => {
                wrong.push(format!("{place}: a backend must not use the job file"));
            }
            _ => {}
        }
    }
    for (_, file) in tree.files.iter().enumerate().filter(|(number, _)| backend(*number).is_some()) {
        let jobs = file.source.references.iter().filter(|reference| {
            matches!(&reference.path[..], [schema, .., job] if schema == "jobc_schema" && job == "Job")
        });
        wrong.extend(
            jobs.map(|job| format!("{}:{}: a backend must not use the job file", file.path, job.line)),
        );
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::backends;
    use crate::tree::Tree;

    fn check(inner: &str, expected: &[&str]) {
        let files = [
            ("lib.rs", "mod backend; mod backends; mod document;"),
            ("backend.rs", ""),
            ("backends.rs", "mod a; mod b; fn table() { a::A; b::B }"),
            ("backends/a.rs", "mod c;"),
            ("backends/a/c.rs", inner),
            ("backends/b.rs", ""),
            ("document.rs", ""),
        ];
        assert_eq!(backends(&Tree::new("jobc-compiler", "c/src".into(), &files)), expected, "{inner}");
    }

    #[test]
    fn a_backend_stands_by_itself() {
        check("use crate::backend::B; use super::A; use jobc_schema::job::Network;", &[]);
        check(
            "\nuse super::super::b::B;",
            &["c/src/backends/a/c.rs:2 -> c/src/backends/b.rs: the backend `a` must not use the backend `b`"],
        );
        check(
            "use crate::document::Document;",
            &["c/src/backends/a/c.rs:1 -> c/src/document.rs: a backend must not use the job file"],
        );
        check("use jobc_schema::Job;", &["c/src/backends/a/c.rs:1: a backend must not use the job file"]);
    }
}
