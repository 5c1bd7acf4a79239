//! What this machine gives a bundle that names no machine: its root, and the user behind a name.
//!
//! A bundle of `jobc build` is the same wherever it is built; what only a machine knows stands in its annotations
//! (docs/reference/oci.md). An allocation answers them. It is applied to a copy of config.json, which is what then runs, under
//! this runtime or another; the bundle itself is never changed.

mod devices;
pub mod image;

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use jobc_container::bundle::Bundle;
use jobc_container::config::Config;
use jobc_container::root::layers::Layers;
use jobc_container::root::{Root, Upper};
use jobc_container::{rootless, user};
use jobc_sys::error::{Error, Kind, Result, because};
use jobc_sys::machine;

pub use devices::Devices;

/// The answers to a bundle's annotations.
#[derive(Debug)]
pub struct Allocation {
    /// The root file system.
    pub root: Root,
    /// The user that the annotation `dev.jobc.user` names.
    pub user: Option<NamedUser>,
    /// Folders of outputs that are not there yet.
    pub outputs: Vec<PathBuf>,
    /// The GPUs.
    pub devices: Option<Devices>,
}

/// Who a name stands for in the container's /etc/passwd and /etc/group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedUser {
    /// `USER` or `USER:GROUP`, as the bundle has it.
    pub name: String,
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// Further groups.
    pub further: Vec<u32>,
}

/// Annotations of what `jobc run` does not give yet, and what to do instead. Those that end with a dot are prefixes.
const NOT_GIVEN: &[(&str, &str, &str)] = &[
    (devices::ANNOTATION, "GPUs", "name them, as in `--devices 0,1`; `jobc gpu ls` lists them"),
    ("dev.jobc.secret.", "secrets", "add their values to a copy of the bundle"),
    ("dev.jobc.ssh", "keys for ssh", "bind a folder with them at /etc/jobc/ssh in a copy of the bundle"),
];

impl Allocation {
    /// Answers a bundle's annotations; `choice` is a root that the command line names, `folder` the container's own
    /// folder, `devices` the GPUs that the command line names.
    ///
    /// # Errors
    ///
    /// What the bundle needs and nobody gives it. With `complete` false another runtime may, and only what is decided
    /// here is looked at.
    pub fn of(
        bundle: &Bundle,
        choice: Option<&str>,
        devices: Option<Devices>,
        folder: &Path,
        complete: bool,
    ) -> Result<Self> {
        if complete {
            refuse_not_given(bundle, devices.is_some())?;
        }
        see_volumes(bundle)?;
        let root = Root::of(bundle, choice, folder)?;
        Ok(Self { user: user_of(bundle, &root)?, root, outputs: absent_outputs(bundle), devices })
    }

    /// Makes what is not there yet.
    pub fn make(&self) -> Result<()> {
        for folder in &self.outputs {
            std::fs::create_dir_all(folder).map_err(|error| {
                Error::new(Kind::Machine, format!("cannot make `{}`: {}", folder.display(), because(&error)))
            })?;
        }
        Ok(())
    }

    /// The bundle's config.json with the answers in it, and what a normal user must have otherwise than it says, a line
    /// each.
    ///
    /// What was relative to the bundle is absolute, since the copy stands elsewhere.
    pub fn apply(&self, bundle: &Bundle) -> Result<(Vec<u8>, Vec<String>)> {
        let broken =
            |error: serde_json::Error| Error::new(Kind::Config, format!("config.json is not JSON: {error}"));
        let mut config: Value = serde_json::from_slice(&bundle.text).map_err(broken)?;
        if !config["root"].is_object() {
            config["root"] = json!({});
        }
        config["root"]["path"] = json!(self.root.place());
        if let Some(NamedUser { uid, gid, further, .. }) = &self.user {
            let user = &mut config["process"]["user"];
            user["uid"] = json!(uid);
            user["gid"] = json!(gid);
            if !further.is_empty() {
                user["additionalGids"] = json!(further);
            }
        }
        for mount in config["mounts"].as_array_mut().into_iter().flatten() {
            if is_bind(mount)
                && let Some(source) = mount["source"].as_str()
            {
                mount["source"] = json!(bundle.dir.join(source));
            }
        }
        let text = serde_json::to_vec_pretty(&config).map_err(broken)?;
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        let within = uid.is_root() && machine::in_user_namespace();
        if uid.is_root() && !within && self.devices.is_none() {
            return Ok((text, Vec::new()));
        }
        let mut spec = Config::read(&text)?.spec;
        let mut said = Vec::new();
        if !uid.is_root() {
            said.extend(rootless::adapt(&mut spec, uid.as_raw(), gid.as_raw())?);
        } else if within {
            said.extend(rootless::adapt_within(&mut spec));
        }
        if let Some(devices) = &self.devices {
            said.extend(devices.give(bundle, &mut spec, &self.root)?);
        }
        Ok((serde_json::to_vec_pretty(&spec).map_err(broken)?, said))
    }
}

impl fmt::Display for Allocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.root {
            Root::Folder(path) => writeln!(f, "root: {}", path.display())?,
            Root::Overlay { lowers, upper, .. } => {
                match &lowers[..] {
                    [lower] => write!(f, "root: {}", lower.display())?,
                    lowers => write!(f, "root: {} layers", lowers.len())?,
                }
                match upper {
                    Upper::Memory { size: Some(bytes) } => {
                        writeln!(f, " under a writable layer in memory of {bytes} bytes")?;
                    }
                    Upper::Memory { size: None } => writeln!(f, " under a writable layer in memory")?,
                    Upper::Folder(folder) => writeln!(f, " under a writable layer in {}", folder.display())?,
                }
            }
        }
        if let Some(NamedUser { name, uid, gid, further }) = &self.user {
            write!(f, "user: {name} is {uid}:{gid}")?;
            let further: Vec<String> = further.iter().map(u32::to_string).collect();
            if further.is_empty() { writeln!(f)? } else { writeln!(f, ", groups {}", further.join(", "))? }
        }
        if let Some(devices) = &self.devices {
            writeln!(f, "GPUs: {}, which no lease keeps from others", devices.names().join(", "))?;
        }
        for output in &self.outputs {
            writeln!(f, "output: {}", output.display())?;
        }
        Ok(())
    }
}

/// The user that a bundle names, as its root knows them.
pub(crate) fn user_of(bundle: &Bundle, root: &Root) -> Result<Option<NamedUser>> {
    bundle.annotation("dev.jobc.user").map(|name| named_user(root.folders(), name)).transpose()
}

/// Who `USER` or `USER:GROUP` is in a root.
pub(crate) fn named_user(root: &[PathBuf], name: &str) -> Result<NamedUser> {
    let root = Layers::open(root).map_err(|errno| Error::machine("open the root", errno))?;
    let user::Account { uid, gid, additional: further } =
        user::lookup(&root, name).map_err(|error| error.at("/annotations/dev.jobc.user"))?;
    Ok(NamedUser { name: name.to_owned(), uid, gid, further })
}

fn refuse_not_given(bundle: &Bundle, devices: bool) -> Result<()> {
    let annotations = bundle.config.spec.annotations().iter().flatten();
    let mut keys: Vec<&String> = annotations.map(|(key, _)| key).collect();
    keys.sort();
    for key in keys.into_iter().filter(|key| !(devices && *key == devices::ANNOTATION)) {
        let matches = |known: &str| if known.ends_with('.') { key.starts_with(known) } else { key == known };
        if let Some((_, what, help)) = NOT_GIVEN.iter().find(|(known, _, _)| matches(known)) {
            return Err(Error::new(Kind::Unsupported, format!("{what} are not given to a single bundle"))
                .at(format!("/annotations/{}", jobc_container::config::escaped(key)))
                .help(*help));
        }
    }
    Ok(())
}

/// Fetched data must lie where the bundle binds it from.
fn see_volumes(bundle: &Bundle) -> Result<()> {
    let fetched = |key: &str| bundle.annotation(key).filter(|_| key.starts_with("dev.jobc.volume."));
    for (key, _) in bundle.config.spec.annotations().iter().flatten() {
        let Some(what) = fetched(key) else { continue };
        let name = key.trim_start_matches("dev.jobc.volume.");
        let place = bundle.dir.join("../volumes").join(name);
        if !place.exists() {
            return Err(Error::new(Kind::Unsupported, format!("the volume `{name}` is not fetched"))
                .at(format!("/annotations/{}", jobc_container::config::escaped(key)))
                .help(format!("fetch `{what}` to `{}`", place.display())));
        }
    }
    Ok(())
}

/// The folders that outputs are bound from, where they are not there.
fn absent_outputs(bundle: &Bundle) -> Vec<PathBuf> {
    let annotations = bundle.config.spec.annotations().iter().flatten();
    let wanted: Vec<&String> =
        annotations.filter(|(key, _)| key.starts_with("dev.jobc.output.")).map(|(_, place)| place).collect();
    let mounts = bundle.config.spec.mounts().iter().flatten();
    mounts
        .filter(|mount| wanted.iter().any(|place| Path::new(place.as_str()) == mount.destination()))
        .filter_map(|mount| mount.source().as_ref().map(|source| bundle.dir.join(source)))
        .filter(|source| !source.exists())
        .collect()
}

fn is_bind(mount: &Value) -> bool {
    let options = mount["options"].as_array().into_iter().flatten();
    mount["type"] == "bind" || options.into_iter().any(|option| option == "bind" || option == "rbind")
}

#[cfg(test)]
mod tests;
