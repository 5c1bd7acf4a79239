//! Package URLs (ECMA-427): names of packages that are the same in all documents.

use jobc_schema::digest::Digest;
use jobc_schema::percent::{AsciiSet, PATH, SEGMENT, encode};
use jobc_schema::reference::Reference;

use crate::packages::{Distribution, Package, PackageKind};

/// The characters that are encoded in names and versions.
const NAME: &AsciiSet = &SEGMENT.remove(b':');
/// The characters that are encoded in the values of qualifiers.
const QUALIFIER: &AsciiSet = &PATH.remove(b':');

/// The URL of an image.
pub(super) fn image(name: &Reference, digest: &Digest, architecture: &str) -> String {
    let last = name.repository.rsplit('/').next().unwrap_or_default().to_lowercase();
    let mut qualifiers = vec![("arch", architecture.to_owned())];
    qualifiers.push(("repository_url", format!("{}/{}", name.registry, name.repository)));
    qualifiers.extend(name.tag.clone().map(|tag| ("tag", tag)));
    url("oci", &[&last], &digest.to_string(), &qualifiers)
}

/// The URL of a package.
pub(super) fn package(package: &Package, distribution: Option<&Distribution>) -> String {
    let mut qualifiers = package.qualifiers.clone();
    let of_distribution = distribution.map(|distribution| distribution.id.as_str());
    let distro = distribution.and_then(|found| Some(format!("{}-{}", found.id, found.version.as_ref()?)));
    let name = match package.kind {
        // Names of Python packages are compared like this.
        PackageKind::Python => package.name.to_lowercase().replace('_', "-"),
        PackageKind::Debian | PackageKind::Alpine | PackageKind::Conda => package.name.to_lowercase(),
    };
    let (kind, path): (&str, Vec<&str>) = match package.kind {
        PackageKind::Debian => ("deb", vec![of_distribution.unwrap_or("debian"), &name]),
        PackageKind::Alpine => ("apk", vec![of_distribution.unwrap_or("alpine"), &name]),
        PackageKind::Python => ("pypi", vec![&name]),
        PackageKind::Conda => ("conda", vec![&name]),
    };
    if matches!(package.kind, PackageKind::Debian | PackageKind::Alpine) {
        qualifiers.extend(distro.map(|distro| ("distro", distro)));
    }
    url(kind, &path, &package.version, &qualifiers)
}

fn url(kind: &str, path: &[&str], version: &str, qualifiers: &[(&str, String)]) -> String {
    let path: Vec<String> = path.iter().map(|part| encode(part, NAME)).collect();
    let mut sorted: Vec<_> = qualifiers.iter().filter(|(_, value)| !value.is_empty()).collect();
    sorted.sort();
    let qualifiers: Vec<String> =
        sorted.iter().map(|(name, value)| format!("{name}={}", encode(value, QUALIFIER))).collect();
    let question = if qualifiers.is_empty() { "" } else { "?" };
    format!("pkg:{kind}/{}@{}{question}{}", path.join("/"), encode(version, NAME), qualifiers.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: PackageKind, name: &str, version: &str, qualifiers: &[(&'static str, &str)]) -> String {
        let qualifiers = qualifiers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let found = Package {
            kind,
            name: name.to_owned(),
            version: version.to_owned(),
            path: String::new(),
            layer: Digest::of(b""),
            qualifiers,
            license: None,
        };
        let debian = Distribution { id: "debian".to_owned(), version: Some("12".to_owned()), name: None };
        package(&found, Some(&debian))
    }

    #[test]
    fn packages_have_the_urls_of_their_kind() {
        assert_eq!(
            check(PackageKind::Debian, "libstdc++6", "1:12.2.0-14+deb12u1", &[("arch", "amd64")]),
            "pkg:deb/debian/libstdc%2B%2B6@1:12.2.0-14%2Bdeb12u1?arch=amd64&distro=debian-12"
        );
        assert_eq!(
            check(PackageKind::Python, "Torch_Vision", "0.19.0+cpu", &[]),
            "pkg:pypi/torch-vision@0.19.0%2Bcpu"
        );
        assert_eq!(
            check(
                PackageKind::Conda,
                "numpy",
                "1.26",
                &[("build", "py_0"), ("channel", "https://c.example/main")]
            ),
            "pkg:conda/numpy@1.26?build=py_0&channel=https://c.example/main"
        );
        let name: Reference = "debian:12".parse().unwrap();
        let digest = Digest::of(b"");
        assert_eq!(
            image(&name, &digest, "amd64"),
            format!("pkg:oci/debian@{digest}?arch=amd64&repository_url=docker.io/library/debian&tag=12")
        );
    }
}
