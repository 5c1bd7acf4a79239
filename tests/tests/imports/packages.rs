//! The crates of the workspace by their manifests, and the packages of the lock file.

use std::collections::BTreeSet;
use std::process::Command;

use camino::Utf8Path;
use jobc_tests::workspace;
use serde_json::Value;

use crate::order::Package;

/// The crates of the workspace, as cargo reads their manifests.
pub(crate) fn packages() -> Vec<Package> {
    let root = workspace();
    let text = cargo(&["metadata", "--no-deps", "--locked", "--offline", "--format-version", "1"]);
    let metadata: Value = serde_json::from_str(&text).expect("cargo writes JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    packages
        .iter()
        .map(|package| {
            let manifest = Utf8Path::new(package["manifest_path"].as_str().expect("a path"));
            let directory = manifest.parent().and_then(|path| path.strip_prefix(&root).ok());
            let dependencies = package["dependencies"].as_array().expect("dependencies").iter();
            // Excludes dependencies of tests, and crates from elsewhere.
            let ours = dependencies
                .filter(|dependency| dependency["kind"] != "dev" && dependency["path"].is_string());
            Package {
                name: text_of(&package["name"]),
                directory: directory.expect("it lies in the workspace").to_string(),
                dependencies: ours.map(|dependency| text_of(&dependency["name"])).collect(),
            }
        })
        .collect()
}

/// How many packages of others the lock file holds.
pub(crate) fn locked(lock: &str) -> usize {
    lock.split("[[package]]").skip(1).filter(|package| package.contains("\nsource = ")).count()
}

/// How many packages a crate is built of, with it, by features.
pub(crate) fn built_of(name: &str, features: Option<&str>) -> usize {
    let mut arguments =
        vec!["tree", "-e", "normal", "--locked", "--offline", "--prefix", "none", "-f", "{p}", "-p", name];
    if let Some(features) = features {
        arguments.extend(["--no-default-features", "--features", features]);
    }
    let text = cargo(&arguments);
    let words = |line: &str| line.split(' ').take(2).map(str::to_owned).collect::<Vec<_>>();
    text.lines().map(words).collect::<BTreeSet<_>>().len()
}

fn cargo(arguments: &[&str]) -> String {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo).args(arguments).current_dir(workspace()).output().expect("cargo runs");
    assert!(output.status.success(), "cargo {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("cargo writes text")
}

fn text_of(value: &Value) -> String {
    value.as_str().expect("a string").to_owned()
}
