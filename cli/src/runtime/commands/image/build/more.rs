//! Command-line input of a build: named contexts, caches, outputs, hosts.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use indexmap::IndexMap;
use jobc_image::build::{Extras, NamedContext};
use jobc_image::dockerfile::ignore::Ignore;
use jobc_image::{Reference, Store, progress, source};
use jobc_sys::error::{Error, Kind, Result};

use super::limits::ulimit;
use crate::runtime::args::image_build::BuildMoreArgs;

/// Where the image is written in addition to the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Output {
    pub(super) kind: OutputKind,
    /// The file or directory; stdout where absent.
    pub(super) dest: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutputKind {
    /// An archive with an OCI layout.
    Oci,
    /// An archive of the files.
    Tar,
    /// A directory of the files.
    Local,
}

/// All of it, parsed.
pub(super) struct MoreOptions {
    pub(super) extras: Extras,
    pub(super) cache_from: Vec<Reference>,
    pub(super) cache_to: Vec<Reference>,
    pub(super) outputs: Vec<Output>,
}

impl MoreOptions {
    /// Reads the options. Images of OCI layouts are imported into the store.
    pub(super) fn read(args: &BuildMoreArgs, store: &Store) -> Result<Self> {
        let mut extras = Extras::default();
        for text in &args.build_context {
            let (name, value) = pair(text, "build context", "NAME=PATH")?;
            extras.contexts.insert(name.to_owned(), context(value, store)?);
        }
        for text in &args.add_host {
            extras.hosts.push(host(text)?);
        }
        extras.shm_bytes = args.shm_size.as_deref().map(bytes).transpose()?;
        extras.memory_bytes = args.memory.as_deref().map(bytes).transpose()?;
        extras.rlimits = args.ulimit.iter().map(|text| ulimit(text)).collect::<Result<_>>()?;
        for text in &args.annotation {
            let (key, value) = pair(text, "annotation", "KEY=VALUE")?;
            // BuildKit's prefix for annotations of the manifest, the only kind supported here.
            let key = key.strip_prefix("manifest:").unwrap_or(key);
            extras.annotations.insert(key.to_owned(), value.to_owned());
        }
        Ok(Self {
            extras,
            cache_from: args
                .cache_from
                .iter()
                .map(|text| cache(text, "--cache-from"))
                .collect::<Result<_>>()?,
            cache_to: args.cache_to.iter().map(|text| cache(text, "--cache-to")).collect::<Result<_>>()?,
            outputs: args.output.iter().map(|text| output(text)).collect::<Result<_>>()?,
        })
    }

    /// Whether an output takes stdout.
    pub(super) fn uses_stdout(&self) -> bool {
        self.outputs.iter().any(|output| output.dest.is_none())
    }
}

fn refused(message: String, help: &str) -> Error {
    Error::new(Kind::Config, message).help(help)
}

fn pair<'a>(text: &'a str, what: &str, form: &str) -> Result<(&'a str, &'a str)> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name, value)),
        _ => Err(refused(format!("invalid {what} `{text}`"), &format!("write `{form}`"))),
    }
}

/// A directory, an OCI layout or an image.
fn context(value: &str, store: &Store) -> Result<NamedContext> {
    if let Some(rest) = value.strip_prefix("oci-layout:") {
        return layout(rest.strip_prefix("//").unwrap_or(rest), store).map(NamedContext::Image);
    }
    let image = value.strip_prefix("docker-image://");
    let path = Path::new(value);
    if image.is_none() && path.is_dir() {
        let ignore = std::fs::read_to_string(path.join(".dockerignore")).unwrap_or_default();
        let ignore = Ignore::read(&ignore)
            .map_err(|_| refused(format!("invalid `.dockerignore` in `{value}`"), "fix or remove it"))?;
        return Ok(NamedContext::Directory(path.to_owned(), ignore));
    }
    image.unwrap_or(value).parse().map(NamedContext::Image).map_err(|_| {
        refused(
            format!("the build context `{value}` is neither a directory nor an image"),
            "write a directory, `oci-layout:PATH` or an image name",
        )
    })
}

/// The image of a layout: the only one, or that of a tag. It is in the store by its digest then.
fn layout(text: &str, store: &Store) -> Result<Reference> {
    let (path, tag) = match text.rsplit_once(':') {
        Some((path, tag)) if !tag.contains('/') && !Path::new(text).is_dir() => (path, Some(tag)),
        _ => (text, None),
    };
    if !Path::new(path).join("oci-layout").is_file() {
        return Err(refused(
            format!("`{path}` is not an OCI layout"),
            "name a directory with the file `oci-layout`",
        ));
    }
    let images = source::import(store, Path::new(path), &progress::ignore_progress, &AtomicBool::new(false))?;
    let has_tag = |image: &&source::ImportedImage| {
        tag.is_none_or(|tag| image.names.iter().any(|name| name.tag.as_deref() == Some(tag)))
    };
    let found: Vec<_> = images.iter().filter(has_tag).collect();
    let [image] = found[..] else {
        let message = format!("the layout `{path}` has {} such images instead of one", found.len());
        return Err(refused(message, "write `oci-layout:PATH:TAG`"));
    };
    // A name that no registry can have, so that only the store is searched.
    let digest = &image.descriptor.digest;
    let name: Reference =
        format!("localhost/jobc-build-context:{}", digest.short()).parse().map_err(Error::from)?;
    store.tag(&name, &image.descriptor)?;
    Ok(name)
}

/// `HOST:IP` or `HOST=IP`.
fn host(text: &str) -> Result<(String, String)> {
    let invalid = || refused(format!("invalid host `{text}`"), "write `HOST:IP`, such as `db:10.0.0.2`");
    let (name, address) = text.split_once('=').or_else(|| text.split_once(':')).ok_or_else(invalid)?;
    let address: IpAddr =
        address.trim_start_matches('[').trim_end_matches(']').parse().map_err(|_| invalid())?;
    let good =
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    if good { Ok((name.to_owned(), address.to_string())) } else { Err(invalid()) }
}

/// A number of bytes, with the units of Docker: `64m`.
fn bytes(text: &str) -> Result<u64> {
    let invalid = || refused(format!("invalid size `{text}`"), "write a number with `b`, `k`, `m` or `g`");
    let lower = text.to_ascii_lowercase();
    let lower = lower.strip_suffix("ib").or_else(|| lower.strip_suffix('b')).unwrap_or(&lower);
    let end = lower.find(|c: char| !c.is_ascii_digit()).unwrap_or(lower.len());
    let shift = match &lower[end..] {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        _ => return Err(invalid()),
    };
    let number: u64 = lower[..end].parse().map_err(|_| invalid())?;
    number.checked_mul(1 << shift).filter(|bytes| *bytes > 0).ok_or_else(invalid)
}

/// `type=registry,ref=IMAGE`, or the image alone.
fn cache(text: &str, option: &str) -> Result<Reference> {
    let form = "write `type=registry,ref=IMAGE`";
    let mut reference = if text.contains('=') { None } else { Some(text) };
    for field in text.split(',').filter(|_| text.contains('=')) {
        match field.split_once('=') {
            Some(("type", "registry") | ("mode", "max")) => {}
            Some(("type", kind)) => {
                return Err(refused(format!("unsupported type `{kind}` of `{option}`"), form));
            }
            Some(("ref", value)) => reference = Some(value),
            _ => return Err(refused(format!("unknown field `{field}` of `{option}`"), form)),
        }
    }
    let reference = reference.ok_or_else(|| refused(format!("`{option}` names no image"), form))?;
    reference.parse().map_err(|error: jobc_schema::reference::ReferenceError| error.into())
}

/// `type=oci|tar|local,dest=PATH`, a directory, or `-`.
fn output(text: &str) -> Result<Output> {
    let form = "write `type=oci,dest=FILE`, `type=tar,dest=FILE` or `type=local,dest=DIR`";
    if text == "-" {
        return Ok(Output { kind: OutputKind::Tar, dest: None });
    }
    if !text.contains('=') {
        return Ok(Output { kind: OutputKind::Local, dest: Some(PathBuf::from(text)) });
    }
    let mut fields: IndexMap<&str, &str> = IndexMap::new();
    for field in text.split(',') {
        match field.split_once('=') {
            Some((key @ ("type" | "dest"), value)) => drop(fields.insert(key, value)),
            _ => return Err(refused(format!("unknown field `{field}` of `--output`"), form)),
        }
    }
    let kind = match fields.get("type").copied() {
        Some("oci" | "docker") => OutputKind::Oci,
        Some("tar") => OutputKind::Tar,
        Some("local") => OutputKind::Local,
        Some(other) => return Err(refused(format!("unsupported type `{other}` of `--output`"), form)),
        None => return Err(refused(format!("the output `{text}` has no type"), form)),
    };
    let dest = fields.get("dest").filter(|dest| **dest != "-").map(PathBuf::from);
    if dest.is_none() && kind == OutputKind::Local {
        return Err(refused("`type=local` needs a directory".to_owned(), form));
    }
    Ok(Output { kind, dest })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_read_as_other_builders_read_them() {
        let check = |text: &str, kind, dest: Option<&str>| {
            assert_eq!(output(text).unwrap(), Output { kind, dest: dest.map(PathBuf::from) }, "{text}");
        };
        check("out", OutputKind::Local, Some("out"));
        check("-", OutputKind::Tar, None);
        check("type=oci,dest=a.tar", OutputKind::Oci, Some("a.tar"));
        check("type=tar,dest=-", OutputKind::Tar, None);
        check("dest=d,type=local", OutputKind::Local, Some("d"));
        for (text, words) in [
            ("type=local", "needs a directory"),
            ("type=registry", "unsupported type `registry`"),
            ("dest=x", "has no type"),
            ("type=oci,push=true", "unknown field `push=true`"),
        ] {
            assert!(output(text).unwrap_err().message().contains(words), "{text}");
        }
    }

    #[test]
    fn hosts_sizes_and_caches_are_parsed() {
        assert_eq!(host("db:10.0.0.2").unwrap(), ("db".to_owned(), "10.0.0.2".to_owned()));
        assert_eq!(host("db=[::1]").unwrap().1, "::1");
        assert_eq!(host("db:::1").unwrap().1, "::1");
        assert!(
            ["db", "db:x", ":1.2.3.4", "a b:1.2.3.4", "a\n:1.2.3.4"].iter().all(|text| host(text).is_err())
        );
        assert_eq!(bytes("64m").unwrap(), 64 << 20);
        assert_eq!(bytes("2GiB").unwrap(), 2 << 30);
        assert_eq!(bytes("4096").unwrap(), 4096);
        assert!(["", "m", "1x", "0", "99999999999g", "-1"].iter().all(|text| bytes(text).is_err()));
        assert_eq!(
            cache("type=registry,ref=localhost:5000/a:b,mode=max", "x").unwrap().to_string(),
            "localhost:5000/a:b"
        );
        assert_eq!(cache("localhost:5000/a:b", "x").unwrap().to_string(), "localhost:5000/a:b");
        for (text, words) in [("type=gha", "unsupported type `gha`"), ("type=registry", "names no image")] {
            assert!(cache(text, "--cache-to").unwrap_err().message().contains(words), "{text}");
        }
    }
}
