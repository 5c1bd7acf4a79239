//! Credentials for registries: the files of `docker login` and `podman login`, and the helper programs they name.
//!
//! Formats: docker's `config.json` and containers-auth.json(5), which differ only in the keys of `auths`.

mod helper;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jobc_sys::error::{Error, Kind, Result};
use serde::Deserialize;

/// The name of Docker Hub in these files, from docker's first registry.
const DOCKER_HUB_KEY: &str = "https://index.docker.io/v1/";

/// Credentials for a registry, or for its token service.
#[derive(Clone, PartialEq, Eq)]
pub enum Credential {
    /// A user's name and password.
    Password {
        /// The name.
        user: String,
        /// The password.
        password: String,
    },
    /// A token that is exchanged for others (OAuth 2, `refresh_token`).
    Identity(String),
    /// A token that the registry itself takes.
    Registry(String),
}

impl fmt::Debug for Credential {
    /// Its type, never its value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Password { .. } => "Password",
            Self::Identity(_) => "Identity",
            Self::Registry(_) => "Registry",
        })
    }
}

/// The files that are searched, nearest first.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    files: Vec<PathBuf>,
}

impl Credentials {
    /// The files of this user: those that `REGISTRY_AUTH_FILE` and `DOCKER_CONFIG` name, then podman's, then docker's.
    pub fn of_user() -> Self {
        let directory =
            |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = directory("HOME");
        let below_home = |path: &str| home.as_ref().map(|home| home.join(path));
        let files = [
            directory("REGISTRY_AUTH_FILE"),
            directory("DOCKER_CONFIG").map(|directory| directory.join("config.json")),
            directory("XDG_RUNTIME_DIR").map(|directory| directory.join("containers/auth.json")),
            directory("XDG_CONFIG_HOME")
                .map(|directory| directory.join("containers/auth.json"))
                .or_else(|| below_home(".config/containers/auth.json")),
            below_home(".docker/config.json"),
        ];
        Self { files: files.into_iter().flatten().collect() }
    }

    /// Only these files, nearest first.
    pub fn of_files(files: Vec<PathBuf>) -> Self {
        Self { files }
    }

    /// The credentials for a repository of a registry; `None` without a login.
    ///
    /// # Errors
    ///
    /// An existing file that cannot be read, and a helper that fails for another reason than an unknown registry.
    pub fn find(&self, registry: &str, repository: &str) -> Result<Option<Credential>> {
        for path in &self.files {
            if let Some(file) = read(path)?
                && let Some(found) = file.find(registry, repository, path)?
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

/// A credentials file of Docker or Podman; other keys are ignored.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct File {
    auths: BTreeMap<String, Entry>,
    cred_helpers: BTreeMap<String, String>,
    creds_store: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Entry {
    auth: String,
    username: String,
    password: String,
    identitytoken: String,
    registrytoken: String,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Entry")
    }
}

fn read(path: &Path) -> Result<Option<File>> {
    let text = match std::fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(Error::new(Kind::System, format!("cannot read `{}`: {error}", path.display())));
        }
    };
    // podman and docker both take an empty file for one without entries.
    if text.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    serde_json::from_slice(&text).map(Some).map_err(|error| {
        // The parser's own words could quote a password.
        let place = format!("line {}, column {}", error.line(), error.column());
        Error::new(Kind::Config, format!("`{}` is not a valid credentials file: {place}", path.display()))
            .help("log in again with `docker login` or `podman login`")
    })
}

impl File {
    fn find(&self, registry: &str, repository: &str, path: &Path) -> Result<Option<Credential>> {
        let helpers = self.cred_helpers.iter();
        if let Some((key, program)) = helpers.into_iter().find(|(key, _)| canonical_key(key) == registry) {
            return helper::query(program, server(registry, Some(key)));
        }
        for wanted in names(registry, repository) {
            let entries = self.auths.iter().filter(|(key, _)| canonical_key(key) == wanted);
            for (key, entry) in entries {
                if let Some(credential) = entry.credential(key, path)? {
                    return Ok(Some(credential));
                }
            }
        }
        match &self.creds_store {
            Some(program) if !program.is_empty() => helper::query(program, server(registry, None)),
            _ => Ok(None),
        }
    }
}

impl Entry {
    /// The content of the entry; nothing if it only names a helper program.
    fn credential(&self, key: &str, path: &Path) -> Result<Option<Credential>> {
        if !self.registrytoken.is_empty() {
            return Ok(Some(Credential::Registry(self.registrytoken.clone())));
        }
        if !self.identitytoken.is_empty() {
            return Ok(Some(Credential::Identity(self.identitytoken.clone())));
        }
        if self.auth.is_empty() {
            let known = !self.username.is_empty();
            return Ok(known.then(|| Credential::Password {
                user: self.username.clone(),
                password: self.password.clone(),
            }));
        }
        let decoded = STANDARD.decode(self.auth.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let parts = decoded.as_deref().and_then(|text| text.trim_end_matches('\0').split_once(':'));
        let (user, password) = parts.ok_or_else(|| {
            let place = format!("`auths` of `{}`: the entry of `{key}`", path.display());
            Error::new(Kind::Config, format!("{place} is not a name and a password in base64"))
                .help(format!("log in again with `docker login {key}` or `podman login {key}`"))
        })?;
        Ok(Some(Credential::Password { user: user.to_owned(), password: password.to_owned() }))
    }
}

/// The keys for a repository's credentials, most specific first (containers-auth.json(5)).
fn names(registry: &str, repository: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut name = format!("{registry}/{repository}");
    names.push(name.clone());
    while let Some(end) = name.rfind('/') {
        name.truncate(end);
        names.push(name.clone());
    }
    names
}

/// A key without what docker writes around a registry's name: a scheme, `/v1/`, the old name of Docker Hub.
fn canonical_key(key: &str) -> String {
    let bare = key.strip_prefix("https://").or_else(|| key.strip_prefix("http://"));
    let bare = bare.map_or(key, |bare| bare.split('/').next().unwrap_or_default()).trim_end_matches('/');
    let bare = bare.strip_suffix("/v1").or_else(|| bare.strip_suffix("/v2")).unwrap_or(bare);
    let (host, path) = bare.split_once('/').map_or((bare, None), |(host, path)| (host, Some(path)));
    let host = if matches!(host, "index.docker.io" | "registry-1.docker.io") { "docker.io" } else { host };
    path.map_or_else(|| host.to_owned(), |path| format!("{host}/{path}"))
}

/// The request to a helper program.
fn server<'a>(registry: &'a str, key: Option<&'a str>) -> &'a str {
    if registry == "docker.io" { DOCKER_HUB_KEY } else { key.unwrap_or(registry) }
}
