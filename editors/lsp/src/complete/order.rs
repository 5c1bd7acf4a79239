//! The usual order of the fields of a map; fields that are not listed follow in the schema's order.

/// The first fields of a place; `*` is any name or number.
const FIRST: [(&[&str], &[&str]); 13] = [
    (
        &[],
        &[
            "version",
            "name",
            "image",
            "roles",
            "params",
            "data",
            "outputs",
            "secrets",
            "env",
            "distributed",
            "description",
            "retry",
            "timeout",
            "matrix",
            "metrics",
        ],
    ),
    (
        &["roles", "*"],
        &[
            "image",
            "resources",
            "run",
            "instances",
            "needs",
            "env",
            "data",
            "outputs",
            "timeout",
            "retry",
            "setup",
            "workdir",
            "ready",
            "files",
            "matrix",
            "metrics",
        ],
    ),
    (&["roles", "*", "resources"], &["cpu", "memory", "gpu", "shm", "ports", "disk"]),
    (&["roles", "*", "resources", "gpu"], &["count", "model", "memory", "share"]),
    (&["image"], IMAGE),
    (&["images", "*"], IMAGE),
    (&["roles", "*", "image"], IMAGE),
    (&["data", "*"], &["source", "mount", "writable"]),
    (&["outputs", "*"], &["source", "mount"]),
    (&["distributed"], &["framework", "roles"]),
    (&["params", "*"], &["default", "description", "choices", "min", "max"]),
    (&["targets", "*"], &["backends", "description", "kubernetes", "slurm", "openpai", "oci", "ssh"]),
    (
        &["targets", "*", "kubernetes"],
        &["namespace", "gpu", "storage", "queue", "node_selector", "tolerations"],
    ),
];

const IMAGE: &[&str] = &[
    "from",
    "python",
    "apt",
    "copy",
    "run",
    "workdir",
    "env",
    "conda",
    "dockerfile",
    "context",
    "use",
    "host",
];

/// The position of a field in the usual order; `declared` is its position in the schema.
pub(super) fn order(path: &[String], key: &str, declared: usize) -> u16 {
    let fits = |pattern: &&[&str]| {
        pattern.len() == path.len()
            && pattern.iter().zip(path).all(|(wanted, step)| *wanted == "*" || wanted == step)
    };
    let first = FIRST.iter().find(|(pattern, _)| fits(pattern)).map_or(&[][..], |(_, keys)| keys);
    let number = first.iter().position(|known| *known == key).unwrap_or(first.len() + declared);
    u16::try_from(number).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::{FIRST, order};
    use crate::kind::Kind;
    use crate::schema::Schema;

    #[test]
    fn the_listed_fields_exist() {
        for (pattern, keys) in FIRST {
            let path: Vec<String> = pattern.iter().map(|step| (*step).to_owned()).collect();
            let kind = if pattern.first() == Some(&"targets") { Kind::Targets } else { Kind::Job };
            let schema = Schema::of(kind);
            let parts = schema.at(&path);
            let forms: Vec<_> = parts.into_iter().flat_map(|part| schema.forms(part)).collect();
            for key in keys {
                let known = forms.iter().any(|form| form.pointer(&format!("/properties/{key}")).is_some());
                assert!(known, "{pattern:?} has no `{key}`");
            }
        }
        let role = ["roles".to_owned(), "train".to_owned()];
        assert!(order(&role, "image", 9) < order(&role, "resources", 8));
        assert!(order(&role, "run", 2) < order(&role, "args", 3));
    }
}
