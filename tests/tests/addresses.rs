//! No page, message or program links to an address that is not served.

use std::collections::BTreeSet;
use std::process::Command;

use camino::Utf8Path;
use jobc_tests::workspace;

/// The hosts that files of the repository link to, each with what it serves. A person must review a new one: whether it
/// is served, and by whom.
const SERVED: &[&str] = &[
    "cyclonedx.org",           // the name of the SBOM's schema
    "deb.debian.org",          // packages, in a Dockerfile of the tests
    "github.com",              // sources of other projects
    "in-toto.io",              // names of statements that are signed
    "index.docker.io",         // the key of Docker Hub in files of logins
    "insta.rs",                // the tool for snapshots
    "json-schema.org",         // names of JSON Schema's versions
    "json.schemastore.org",    // the schema of SARIF
    "modelcontextprotocol.io", // the Model Context Protocol
    "microsoft.github.io",     // the Language Server Protocol
    "registry-1.docker.io",    // Docker Hub
    "rustup.rs",               // the installer of Rust
    "sh.rustup.rs",            // the same, for a shell
    "sigstore.dev",            // the name of cosign's signatures
    "slsa.dev",                // the name of provenance, which is not a signature
    "www.debian.org",          // the format of copyright files
    "www.w3.org",              // names of XML
    // The text that the code of conduct refers to.
    "www.contributor-covenant.org",
];

/// Data of others, and generated files.
const SKIPPED: &[&str] =
    &["tests/corpus/", "tests/providers/", "fuzz/corpus/", "Cargo.lock", "package-lock.json", "LICENSE"];

/// Names that stand for an address: reserved by RFC 2606 and RFC 6761, a single label, a number, or the documentation's
/// own `x.org`.
fn is_placeholder(host: &str) -> bool {
    let labels: Vec<&str> = host.split('.').collect();
    let [.., domain, top] = labels[..] else { return true };
    ["example", "test", "invalid", "localhost"].contains(&top)
        || (domain == "example" && ["com", "net", "org"].contains(&top))
        || top.bytes().all(|byte| byte.is_ascii_digit())
        || host == "x.org"
        || host == "never.ends"
}

/// The addresses in a text: host and path.
fn addresses(text: &str) -> impl Iterator<Item = (&str, &str)> {
    ["https://", "http://"].into_iter().flat_map(move |scheme| text.split(scheme).skip(1)).filter_map(
        |rest| {
            let end = rest
                .find(|c: char| !c.is_ascii_alphanumeric() && !"-._~/@:%".contains(c))
                .unwrap_or(rest.len());
            let (host, path) = rest[..end].split_once('/').unwrap_or((&rest[..end], ""));
            let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
            let host = host.split(':').next().unwrap_or_default().trim_end_matches('.');
            (!host.is_empty()).then_some((host, path))
        },
    )
}

fn files() -> Vec<String> {
    let listed =
        Command::new("git").args(["ls-files", "-z"]).current_dir(workspace()).output().expect("git runs");
    assert!(listed.status.success(), "git ls-files");
    let names = String::from_utf8(listed.stdout).expect("names are UTF-8");
    let skipped = |name: &str| SKIPPED.iter().any(|part| name.contains(part)) || name.contains("/out/");
    names.split('\0').filter(|name| !name.is_empty() && !skipped(name)).map(str::to_owned).collect()
}

#[test]
fn every_linked_address_is_served() {
    let (mut wrong, mut hosts) = (Vec::new(), BTreeSet::new());
    for name in files() {
        let Ok(text) = std::fs::read_to_string(workspace().join(Utf8Path::new(&name))) else { continue };
        for (host, path) in addresses(&text).filter(|(host, _)| !is_placeholder(host)) {
            hosts.insert(host.to_owned());
            // The project itself has no address yet: those of a release are set when it is built.
            if !SERVED.contains(&host) || path.split('/').any(|part| part.starts_with("jobc")) {
                wrong.push(format!("{name}: {host}/{path}"));
            }
        }
    }
    assert!(wrong.is_empty(), "write the address to `SERVED` if it is served:\n{}", wrong.join("\n"));
    let unused: Vec<&&str> = SERVED.iter().filter(|host| !hosts.contains(**host)).collect();
    assert!(unused.is_empty(), "nothing links to {unused:?}");
}

/// The labels and annotations, and the prefix alone.
const LABELS: [&str; 17] = [
    "/role",
    "/build",
    "/job",
    "/lines",
    "/name",
    "/plan",
    "/user",
    "/submitted",
    "/version",
    "/source-",
    "/code",
    "/provenance",
    "/stopped",
    "/outline",
    "/uploaded",
    "/\"",
    // In a JSON Pointer.
    "~1",
];

/// The domain is the prefix of labels, which are names, not addresses; it is not registered yet.
#[test]
fn the_domain_of_labels_is_no_link() {
    for name in files().iter().filter(|name| *name != "tests/tests/addresses.rs") {
        let Ok(text) = std::fs::read_to_string(workspace().join(Utf8Path::new(name))) else { continue };
        for rest in text.split("jobc.dev").skip(1) {
            assert!(
                LABELS.iter().any(|label| rest.starts_with(label)),
                "{name}: `jobc.dev` is only the prefix of labels and annotations, such as `jobc.dev/role`"
            );
        }
    }
}
