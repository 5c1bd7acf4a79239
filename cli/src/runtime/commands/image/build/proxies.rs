//! Proxies for the commands of builds: those of the environment, else those of docker's `config.json`.

use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use jobc_image::dockerfile::PROXIES;
use jobc_sys::error::{Error, Kind, Result};
use serde_json::Value;

use crate::input::reason;

/// The keys of docker's `proxies.default`, and the variables that they set in both cases.
const KEYS: [(&str, &str); 5] = [
    ("httpProxy", "HTTP_PROXY"),
    ("httpsProxy", "HTTPS_PROXY"),
    ("ftpProxy", "FTP_PROXY"),
    ("noProxy", "NO_PROXY"),
    ("allProxy", "ALL_PROXY"),
];

type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The proxies of this user, by the names of build arguments.
pub(super) fn of_user() -> Result<IndexMap<String, String>> {
    let variable = |name: &str| std::env::var(name).ok();
    let directory = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let file = directory("DOCKER_CONFIG").or_else(|| Some(directory("HOME")?.join(".docker")));
    read(&variable, file.map(|directory| directory.join("config.json")).as_deref())
}

fn read(variable: Variables<'_>, file: Option<&Path>) -> Result<IndexMap<String, String>> {
    let mut all: IndexMap<String, String> =
        PROXIES.iter().filter_map(|name| Some(((*name).to_owned(), variable(name)?))).collect();
    let Some(file) = file else { return Ok(all) };
    let text = match std::fs::read(file) {
        Ok(text) => text,
        Err(error)
            if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) =>
        {
            return Ok(all);
        }
        Err(error) => {
            let message = format!("cannot read `{}`: {}", file.display(), reason(&error));
            return Err(Error::new(Kind::System, message));
        }
    };
    // A file that is not valid is reported where it is used to log in.
    let settings: Value = serde_json::from_slice(&text).unwrap_or_default();
    for (key, name) in KEYS {
        let names = [name.to_owned(), name.to_ascii_lowercase()];
        let value = settings["proxies"]["default"][key].as_str().filter(|value| !value.is_empty());
        // The environment is nearer.
        if let Some(value) = value.filter(|_| !names.iter().any(|name| all.contains_key(name))) {
            all.extend(names.map(|name| (name, value.to_owned())));
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_is_nearer_than_the_file_of_docker() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("config.json");
        let proxies = serde_json::json!({"proxies": {
            "default": {"httpProxy": "http://file:1", "httpsProxy": "http://file:2", "noProxy": "", "other": 1},
            "tcp://h:2375": {"allProxy": "http://other:1"},
        }});
        std::fs::write(&file, proxies.to_string()).unwrap();
        let variable = |name: &str| (name == "https_proxy").then(|| "http://environment:3".to_owned());
        let found = read(&variable, Some(&file)).unwrap();
        let found: Vec<String> = found.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            found,
            ["https_proxy=http://environment:3", "HTTP_PROXY=http://file:1", "http_proxy=http://file:1"]
        );
        assert_eq!(read(&variable, Some(&directory.path().join("none"))).unwrap().len(), 1);
        std::fs::write(&file, "{").unwrap();
        assert_eq!(read(&variable, Some(&file)).unwrap().len(), 1);
    }
}
