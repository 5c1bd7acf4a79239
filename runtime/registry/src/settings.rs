//! User settings for registries: mirrors, certificates, plain HTTP.
//!
//! The format of `registries.yaml`; the caller that reads the file passes it as values. docs/guides/images.md describes
//! it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// The settings of all registries.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// By the registry's name as in references: `docker.io`, `registry.example:5000`.
    #[serde(default)]
    pub registries: BTreeMap<String, RegistrySettings>,
    /// Files with certificates (PEM) that are trusted for all registries, and by builds.
    #[serde(default)]
    pub ca: Vec<PathBuf>,
    /// Use plain HTTP with every registry, as requested on the command line.
    #[serde(skip)]
    pub plain_http: bool,
}

/// The settings of one registry.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct RegistrySettings {
    /// Registries that are queried first, in order, for downloads; each `[http://]HOST[:PORT][/PREFIX]`.
    #[serde(default)]
    pub mirrors: Vec<String>,
    /// Speak plain HTTP.
    #[serde(default)]
    pub plain_http: bool,
    /// Accept any certificate: neither the registry nor its data is authenticated.
    #[serde(default)]
    pub insecure: bool,
    /// Files with certificates (PEM) that are trusted besides the host's: CAs, or the registry's own.
    #[serde(default)]
    pub ca: Vec<PathBuf>,
    /// Our own certificate, where the registry asks for one.
    pub client: Option<ClientFiles>,
}

/// A client certificate with its key.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct ClientFiles {
    /// The certificate and its chain (PEM).
    pub cert: PathBuf,
    /// Its key (PEM).
    pub key: PathBuf,
}

/// An error in the settings, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsError {
    /// The keys, and numbers of lists, that lead to the place.
    pub path: Vec<String>,
    /// The message.
    pub message: String,
}

impl Settings {
    /// Reads the content of a file.
    ///
    /// # Errors
    ///
    /// The first setting that is unknown or of the wrong type.
    pub fn read(value: serde_json::Value) -> Result<Self, SettingsError> {
        use serde_path_to_error::Segment;
        // A file with only comments sets nothing.
        if value.is_null() {
            return Ok(Self::default());
        }
        serde_path_to_error::deserialize(value).map_err(|error| SettingsError {
            path: error
                .path()
                .iter()
                .filter_map(|segment| match segment {
                    Segment::Map { key } => Some(key.clone()),
                    Segment::Seq { index } => Some(index.to_string()),
                    Segment::Enum { .. } | Segment::Unknown => None,
                })
                .collect(),
            message: error.into_inner().to_string(),
        })
    }

    /// Makes the paths of files absolute: they are relative to the directory of the file that names them.
    #[must_use]
    pub fn relative_to(mut self, directory: &Path) -> Self {
        for path in &mut self.ca {
            *path = directory.join(&*path);
        }
        for settings in self.registries.values_mut() {
            let client = settings.client.iter_mut().flat_map(|client| [&mut client.cert, &mut client.key]);
            for path in settings.ca.iter_mut().chain(client) {
                *path = directory.join(&*path);
            }
        }
        self
    }

    /// Adds the certificates of another file, and its registries, of which those that are here already are left out.
    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        for (name, settings) in other.registries {
            self.registries.entry(name).or_insert(settings);
        }
        self.plain_http |= other.plain_http;
        self.ca.extend(other.ca);
        self
    }

    /// The settings of one registry, with what Docker and podman keep of certificates in directories of its name.
    pub(crate) fn of(&self, registry: &str) -> RegistrySettings {
        let mut settings = self.registries.get(registry).cloned().unwrap_or_default();
        settings.plain_http |= self.plain_http;
        if settings.ca.is_empty() && settings.client.is_none() {
            for directory in certificate_directories() {
                settings.take_certificates(&directory.join(registry));
            }
        }
        settings.ca.extend_from_slice(&self.ca);
        settings
    }
}

impl RegistrySettings {
    /// Reads a directory of certs.d (containers-certs.d(5)): `*.crt` are trusted CAs, `NAME.cert` with `NAME.key` is
    /// the client certificate.
    fn take_certificates(&mut self, directory: &Path) {
        let Ok(entries) = std::fs::read_dir(directory) else { return };
        let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.sort();
        for path in paths {
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("crt") => self.ca.push(path),
                Some("cert") if self.client.is_none() => {
                    let key = path.with_extension("key");
                    self.client = key.is_file().then_some(ClientFiles { cert: path, key });
                }
                _ => {}
            }
        }
    }
}

/// Directories where other programs keep certificates of registries.
fn certificate_directories() -> Vec<PathBuf> {
    let own = std::env::var_os("HOME").map(|home| Path::new(&home).join(".config/containers/certs.d"));
    own.into_iter().chain(["/etc/containers/certs.d", "/etc/docker/certs.d"].map(PathBuf::from)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearer_file_decides_about_a_registry() {
        let read = |text: &str, directory: &str| {
            serde_json::from_str::<Settings>(text).unwrap().relative_to(Path::new(directory))
        };
        let own = read(
            r#"{"registries": {"a:5000": {"ca": ["a.pem"], "client": {"cert": "/c", "key": "k"}}}}"#,
            "/own",
        );
        let machine = read(
            r#"{"registries": {"a:5000": {"plain_http": true}, "docker.io": {"mirrors": ["m"]}}}"#,
            "/etc",
        );
        let both = own.merge(machine);
        let a = &both.registries["a:5000"];
        assert!(!a.plain_http);
        assert_eq!(a.ca, [Path::new("/own/a.pem")]);
        assert_eq!(a.client.as_ref().unwrap().cert, Path::new("/c"));
        assert_eq!(a.client.as_ref().unwrap().key, Path::new("/own/k"));
        assert_eq!(both.registries["docker.io"].mirrors, ["m"]);
    }

    #[test]
    fn what_is_wrong_is_reported_with_its_place() {
        let check = |value: serde_json::Value, path: &str, words: &str| {
            let wrong = Settings::read(value).unwrap_err();
            assert_eq!(wrong.path.join(" "), path);
            assert!(wrong.message.contains(words), "{}", wrong.message);
        };
        let of = |settings: serde_json::Value| serde_json::json!({"registries": {"a.b/c": settings}});
        check(
            of(serde_json::json!({"mirror": "m"})),
            "registries a.b/c mirror",
            "unknown field `mirror`, expected one of `mirrors`",
        );
        check(of(serde_json::json!({"ca": ["a", 1]})), "registries a.b/c ca 1", "expected path");
        assert_eq!(Settings::read(serde_json::Value::Null), Ok(Settings::default()));
    }

    #[test]
    fn certificates_of_other_programs_are_found_by_their_names() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["b.crt", "a.crt", "client.cert", "client.key", "keyless.cert", "notes.txt"] {
            std::fs::write(directory.path().join(name), "").unwrap();
        }
        let mut settings = RegistrySettings::default();
        settings.take_certificates(directory.path());
        let names = |paths: &[PathBuf]| {
            paths.iter().map(|path| path.file_name().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names(&settings.ca), ["a.crt", "b.crt"]);
        assert_eq!(settings.client.unwrap().cert.file_name().unwrap(), "client.cert");
    }
}
