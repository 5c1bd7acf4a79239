//! Which crate may depend on which: the list in ARCHITECTURE.md, held against the manifests.

use std::collections::{BTreeMap, BTreeSet};

use crate::page::{block, section};
use crate::tree::Tree;

/// The heading of the order in ARCHITECTURE.md.
pub(crate) const HEADING: &str = "## Who may import whom";

/// The arrows between crates as they are drawn: `a -> b -> c`, several crates of one step between commas.
///
/// A crate may depend on everything its arrows lead to, directly or through others.
#[derive(Debug, Default)]
pub(crate) struct Order {
    arrows: BTreeMap<String, BTreeSet<String>>,
}

/// A crate of the workspace as its manifest has it.
#[derive(Clone, Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Its directory, from the root of the workspace.
    pub(crate) directory: String,
    /// The crates of the workspace that it depends on, except for its tests.
    pub(crate) dependencies: BTreeSet<String>,
}

impl Order {
    /// Reads the list from ARCHITECTURE.md.
    pub(crate) fn read(architecture: &str) -> Self {
        let mut order = Self::default();
        for line in block(section(architecture, HEADING)).lines() {
            let steps = line.split("->").map(|step| {
                let names = step.split(',').filter_map(|name| name.split_whitespace().next());
                names.map(str::to_owned).collect::<Vec<_>>()
            });
            let steps: Vec<Vec<String>> = steps.collect();
            for name in steps.iter().flatten() {
                order.arrows.entry(name.clone()).or_default();
            }
            for pair in steps.windows(2) {
                for from in &pair[0] {
                    order.arrows.entry(from.clone()).or_default().extend(pair[1].iter().cloned());
                }
            }
        }
        order
    }

    /// The problems of the manifests, the imports or the list.
    pub(crate) fn check(&self, packages: &[Package], trees: &[Tree]) -> Vec<String> {
        let mut wrong = Vec::new();
        for name in self.arrows.keys() {
            if self.reach(name).contains(name.as_str()) {
                wrong.push(format!("ARCHITECTURE.md: the arrows lead from `{name}` back to it"));
            }
            if !packages.iter().any(|package| package.name == *name) {
                wrong.push(format!("ARCHITECTURE.md: `{name}` is no crate of the workspace"));
            }
        }
        for package in packages {
            let manifest = format!("{}/Cargo.toml", package.directory);
            if !self.arrows.contains_key(&package.name) {
                wrong.push(format!("{manifest}: `{}` is not in the list of ARCHITECTURE.md", package.name));
                continue;
            }
            let allowed = self.reach(&package.name);
            for other in package.dependencies.iter().filter(|other| !allowed.contains(other.as_str())) {
                let used = used(trees, &package.name, other);
                wrong.push(format!("{manifest}: `{}` must not depend on `{other}`{used}", package.name));
            }
            for drawn in &self.arrows[&package.name] {
                if !package.dependencies.contains(drawn) {
                    wrong.push(format!(
                        "ARCHITECTURE.md: an arrow leads from `{}` to `{drawn}`, which {manifest} does not name",
                        package.name
                    ));
                }
            }
        }
        wrong
    }

    fn reach<'o>(&'o self, name: &'o str) -> BTreeSet<&'o str> {
        let mut found = BTreeSet::new();
        let mut todo = vec![name];
        while let Some(next) = todo.pop() {
            let further = self.arrows.get(next).into_iter().flatten().map(String::as_str);
            todo.extend(further.filter(|name| found.insert(*name)));
        }
        found
    }
}

/// Where a crate first uses another, in words.
fn used(trees: &[Tree], name: &str, other: &str) -> String {
    let library = other.replace('-', "_");
    let files = trees.iter().filter(|tree| tree.name == name).flat_map(|tree| &tree.files);
    let mut uses = files.filter_map(|file| {
        let first = file.source.references.iter().find(|reference| reference.path[0] == library)?;
        Some(format!("; {}:{} uses {}", file.path, first.line, first.path.join("::")))
    });
    uses.next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{Order, Package};
    use crate::tree::Tree;

    const PAGE: &str = "# A\n\n## Who may import whom\n\n```\njobc (cli) -> jobc-b, jobc-c -> jobc-d\n              jobc-b -> jobc-e\n```\n\n## B\n";

    fn check(changed: &[(&str, &[&str])], expected: &[&str]) {
        let manifests = [
            ("jobc", &["jobc-b", "jobc-c", "jobc-d"][..]),
            ("jobc-b", &["jobc-d", "jobc-e"]),
            ("jobc-c", &["jobc-d"]),
            ("jobc-d", &[]),
            ("jobc-e", &[]),
        ];
        let kept = manifests.iter().filter(|(name, _)| !changed.iter().any(|(other, _)| other == name));
        let packages: Vec<Package> = kept
            .chain(changed)
            .map(|(name, dependencies)| Package {
                name: (*name).to_owned(),
                directory: name.replace("jobc-", ""),
                dependencies: dependencies.iter().map(|&name| name.to_owned()).collect(),
            })
            .collect();
        let turned =
            Tree::new("jobc-d", "d/src".into(), &[("lib.rs", "mod a;"), ("a.rs", "\nuse jobc_b::X;")]);
        assert_eq!(Order::read(PAGE).check(&packages, &[turned]), expected, "{changed:?}");
    }

    #[test]
    fn manifests_follow_the_arrows() {
        check(&[], &[]);
        check(
            &[("jobc-d", &["jobc-b"])],
            &["d/Cargo.toml: `jobc-d` must not depend on `jobc-b`; d/src/a.rs:2 uses jobc_b::X"],
        );
        check(
            &[("jobc-b", &["jobc-d"])],
            &["ARCHITECTURE.md: an arrow leads from `jobc-b` to `jobc-e`, which b/Cargo.toml does not name"],
        );
        check(&[("jobc-f", &[])], &["f/Cargo.toml: `jobc-f` is not in the list of ARCHITECTURE.md"]);
    }

    #[test]
    fn the_arrows_themselves_are_sound() {
        let order = Order::read(&PAGE.replace("jobc-d\n", "jobc-d -> jobc-b\n"));
        let found = order.check(&[], &[]);
        assert!(
            found.contains(&"ARCHITECTURE.md: the arrows lead from `jobc-b` back to it".to_owned()),
            "{found:?}"
        );
        assert!(
            found.contains(&"ARCHITECTURE.md: `jobc-e` is no crate of the workspace".to_owned()),
            "{found:?}"
        );
    }
}
