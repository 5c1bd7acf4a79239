//! A group below a container's, which an additional process enters instead: `exec --cgroup`.

use std::path::{Component, Path, PathBuf};

use super::controller::Controller;
use super::layout::Version;
use super::record::GroupRecord;
use jobc_sys::error::{Error, Kind, Result};

/// Groups below a container's own, empty if the process enters those.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubGroups(Vec<SubGroup>);

/// A group, for one controller of cgroup v1 or for all.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SubGroup {
    controller: Option<Controller>,
    path: PathBuf,
}

impl SubGroups {
    /// Reads `PATH`, or several `CONTROLLER,...:PATH`, as runc has them; `/` is the container's own group.
    pub fn parse(texts: &[String]) -> Result<Self> {
        let mut list = Vec::new();
        for text in texts {
            let (controllers, path) = match text.split_once(':') {
                Some((controllers, path)) => (controllers.split(',').map(Some).collect(), path),
                None => (vec![None], text.as_str()),
            };
            if controllers == [None] && texts.len() > 1 {
                return Err(Error::new(Kind::Config, format!("the cgroup `{text}` names no controller"))
                    .help("of several, each needs one: `--cgroup memory:PATH --cgroup cpu,cpuacct:PATH`"));
            }
            let names = Path::new(path).components();
            let names = names.filter(|name| !matches!(name, Component::RootDir | Component::CurDir));
            let path: PathBuf = names.clone().collect();
            if names.into_iter().any(|name| name == Component::ParentDir) {
                let message = format!("`{text}` is not a path below the container's cgroup");
                return Err(Error::new(Kind::Config, message).help("remove `..`"));
            }
            for controller in controllers {
                let known = controller.map(|name| {
                    Controller::from_name(name)
                        .ok_or_else(|| Error::new(Kind::Config, format!("unknown controller `{name}`")))
                });
                list.push(SubGroup { controller: known.transpose()?, path: path.clone() });
            }
        }
        Ok(Self(list))
    }

    /// Whether no group is named.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks that each controller is in one of the container's groups.
    pub(super) fn check(&self, groups: &[GroupRecord]) -> Result<()> {
        let controllers = self.0.iter().filter_map(|sub| sub.controller);
        for controller in controllers {
            if !groups.iter().any(|group| group.controllers.contains(&controller)) {
                let name = controller.name();
                let message = format!("the container has no cgroup v1 group of the controller `{name}`");
                return Err(Error::new(Kind::State, message).help("on cgroup v2, write only a path"));
            }
        }
        Ok(())
    }

    /// The directory of a group, or of the one below it that is named for it.
    pub(super) fn directory_in(&self, group: &GroupRecord) -> Result<Option<PathBuf>> {
        let is_named = |sub: &&SubGroup| match sub.controller {
            None => true,
            Some(controller) => group.version == Version::V1 && group.controllers.contains(&controller),
        };
        let Some(sub) = self.0.iter().find(is_named) else { return Ok(None) };
        let directory = group.directory.join(&sub.path);
        if directory.is_dir() {
            return Ok(Some(directory));
        }
        let message = format!("the container has no cgroup `{}`", directory.display());
        Err(Error::new(Kind::State, message).help("a process of the container makes it with mkdir(1)"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(version: Version, controllers: &[Controller], directory: &Path) -> GroupRecord {
        GroupRecord {
            directory: directory.to_owned(),
            id: 0,
            version,
            controllers: controllers.to_vec(),
            above: vec![],
        }
    }

    fn parse(texts: &[&str]) -> Result<SubGroups> {
        SubGroups::parse(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_path_or_one_for_each_controller() {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(directory.path().join("below")).expect("a directory");
        let memory = group(Version::V1, &[Controller::Memory], directory.path());
        let cpu = group(Version::V1, &[Controller::Cpu, Controller::Cpuacct], directory.path());
        let unified = group(Version::V2, &[], directory.path());
        let below = Some(directory.path().join("below"));
        let of =
            |texts: &[&str], group| parse(texts).expect("groups").directory_in(group).expect("a directory");
        assert_eq!(of(&[], &memory), None);
        assert_eq!(of(&["/"], &unified), Some(directory.path().to_owned()));
        for group in [&memory, &cpu, &unified] {
            assert_eq!(of(&["/below"], group), below);
        }
        let named = ["memory:below", "cpu,cpuacct:/"];
        assert_eq!(of(&named, &memory), below);
        assert_eq!(of(&named, &cpu), Some(directory.path().to_owned()));
        assert_eq!(of(&named, &unified), None);
    }

    #[test]
    fn what_leads_elsewhere_is_refused() {
        for (texts, error) in [
            (&["../other"][..], "`../other` is not a path below the container's cgroup"),
            (&["a/../.."], "`a/../..` is not a path below the container's cgroup"),
            (&["whaaat:/"], "unknown controller `whaaat`"),
            (&["a", "memory:b"], "the cgroup `a` names no controller"),
        ] {
            assert_eq!(parse(texts).map_err(|error| error.message()), Err(error.to_owned()));
        }
        let memory = group(Version::V1, &[Controller::Memory], Path::new("/nowhere"));
        let missing = parse(&["pids:/"]).expect("groups").check(std::slice::from_ref(&memory));
        let message = "the container has no cgroup v1 group of the controller `pids`";
        assert_eq!(missing.map_err(|error| error.message()), Err(message.to_owned()));
        let missing = parse(&["x"]).expect("groups").directory_in(&memory);
        let message = "the container has no cgroup `/nowhere/x`";
        assert_eq!(missing.map_err(|error| error.message()), Err(message.to_owned()));
    }
}
