//! Command-line input of a build: arguments, secrets, names, labels.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use indexmap::IndexMap;
use jobc_container::secret::{MAX_SECRET_SIZE, Secret};
use jobc_image::{Platform, Reference};
use jobc_sys::error::{Error, Kind};

use super::super::name::new_name;
use super::host::BuildHost;
use crate::input::reason;
use crate::runtime::args::image::BuildArgs;
use crate::runtime::commands::jobs::{Failure, Result};

/// All of it, parsed.
pub(super) struct BuildOptions {
    /// Build arguments, with the proxies of this user, as with other builders.
    pub(super) args: Vec<(String, String)>,
    pub(super) secrets: IndexMap<String, Secret>,
    pub(super) labels: IndexMap<String, String>,
    pub(super) tags: Vec<Reference>,
    /// At least one.
    pub(super) platforms: Vec<Platform>,
}

impl BuildOptions {
    pub(super) fn read(args: &BuildArgs, host: &BuildHost) -> Result<Self> {
        let wrong = Failure::usage_error;
        let tags = args.tag.iter().map(|tag| new_name(tag)).collect::<Result<Vec<_>>>()?;
        let mut platforms: Vec<Platform> = Vec::new();
        for text in &args.platform {
            let platform = text.trim().parse().map_err(wrong)?;
            if !platforms.contains(&platform) {
                platforms.push(platform);
            }
        }
        if platforms.is_empty() {
            platforms.push(Platform::here());
        }
        let mut labels = IndexMap::new();
        for label in &args.label {
            let (key, value) = label.split_once('=').unwrap_or((label, ""));
            labels.insert(key.to_owned(), value.to_owned());
        }
        let secrets = args.secret.iter().map(|text| secret(text, &variable));
        Ok(Self {
            args: host.arguments(arguments(&args.build_arg, &variable)),
            secrets: secrets.collect::<std::result::Result<_, _>>().map_err(wrong)?,
            labels,
            tags,
            platforms,
        })
    }
}

type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// `NAME=VALUE`, or `NAME`, whose value is that of the variable; none if the variable is not set.
fn arguments(written: &[String], variables: Variables<'_>) -> Vec<(String, String)> {
    let mut all: IndexMap<String, String> = IndexMap::new();
    for text in written {
        let pair = match text.split_once('=') {
            Some((name, value)) => Some((name.to_owned(), value.to_owned())),
            None => variables(text).map(|value| (text.clone(), value)),
        };
        all.extend(pair);
    }
    all.into_iter().collect()
}

/// `id=NAME,src=FILE`, `id=NAME,env=VARIABLE`, or `id=NAME`, which is the variable of that name.
fn secret(text: &str, variables: Variables<'_>) -> std::result::Result<(String, Secret), Error> {
    let form = "write `id=NAME,src=FILE` or `id=NAME,env=VARIABLE`";
    let refused = |why: String| Error::new(Kind::Config, why).help(form);
    let (mut id, mut file, mut from) = (None, None, None);
    for field in text.split(',') {
        match field.split_once('=') {
            Some(("id", value)) if !value.is_empty() => id = Some(value),
            Some(("src" | "source", value)) => file = Some(value),
            Some(("env", value)) => from = Some(value),
            Some(("type", "file" | "env")) => {}
            _ => return Err(refused(format!("unknown field `{field}` of a secret"))),
        }
    }
    let id = id.ok_or_else(|| refused(format!("the secret `{text}` has no name")))?;
    let value = match (file, from) {
        (Some(_), Some(_)) => {
            return Err(refused(format!("the secret `{id}` has both a file and a variable")));
        }
        (Some(file), None) => from_file(id, Path::new(file))?,
        (None, from) => {
            let name = from.unwrap_or(id);
            let value = variables(name);
            Secret::new(value.ok_or_else(|| {
                refused(format!("the secret `{id}` has no value: the variable `{name}` is not set"))
            })?)
        }
    };
    Ok((id.to_owned(), value))
}

fn from_file(id: &str, path: &Path) -> std::result::Result<Secret, Error> {
    let failed = |why: String| {
        Error::new(Kind::Config, format!("the secret `{id}` cannot be read from `{}`: {why}", path.display()))
    };
    let mut value = Vec::new();
    let file = File::open(path).map_err(|error| failed(reason(&error)))?;
    file.take(MAX_SECRET_SIZE + 1).read_to_end(&mut value).map_err(|error| failed(reason(&error)))?;
    if value.len() as u64 > MAX_SECRET_SIZE {
        return Err(failed("it is larger than 1 MiB".to_owned()));
    }
    Ok(Secret::new(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(name: &str) -> Option<String> {
        ["A"].contains(&name).then(|| format!("value of {name}"))
    }

    #[test]
    fn arguments_come_from_the_command_line_or_the_environment() {
        let written = ["B=1=2", "A", "C", "E="].map(str::to_owned);
        let found = arguments(&written, &variables);
        let found: Vec<String> = found.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(found, ["B=1=2", "A=value of A", "E="]);
    }

    #[test]
    fn secrets_come_from_files_or_the_environment() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("key");
        std::fs::write(&file, "k\n").unwrap();
        let large = directory.path().join("large");
        std::fs::write(&large, vec![0; usize::try_from(MAX_SECRET_SIZE).unwrap() + 1]).unwrap();
        let read = |text: &str| secret(text, &variables).map(|(id, value)| (id, value.bytes().to_vec()));
        assert_eq!(read(&format!("id=k,src={}", file.display())).unwrap(), ("k".to_owned(), b"k\n".to_vec()));
        assert_eq!(read("id=k,env=A").unwrap(), ("k".to_owned(), b"value of A".to_vec()));
        assert_eq!(read("type=env,id=A").unwrap(), ("A".to_owned(), b"value of A".to_vec()));
        let large = format!("id=k,src={}", large.display());
        for (text, expected) in [
            ("src=x", "has no name"),
            ("id=k", "the variable `k` is not set"),
            ("id=k,src=/nowhere/x", "no such file"),
            ("id=k,src=x,env=y", "both a file and a variable"),
            ("id=k,mode=0400", "unknown field `mode=0400` of a secret"),
            (large.as_str(), "larger than 1 MiB"),
        ] {
            let message = read(text).unwrap_err().message();
            assert!(message.contains(expected), "{text}: {message}");
        }
    }
}
