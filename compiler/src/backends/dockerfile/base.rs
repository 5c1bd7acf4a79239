//! Contents of a base image, derived from its reference.
//!
//! Only facts defined by the publisher's tag grammar count as known; for anything else, the base image's own programs
//! are used or the build checks.

use std::fmt;

use jobc_schema::reference::{Parts, Reference};

/// A Python version: major, minor, and the patch where it is known or requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    major: u32,
    minor: u32,
    patch: Option<u32>,
}

impl Version {
    /// Reads `3.11` or `3.11.9`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.').map(str::parse);
        let mut next = || parts.next().transpose().ok();
        let (major, minor, patch) = (next()??, next()??, next()?);
        next()?.is_none().then_some(Self { major, minor, patch })
    }

    const fn of(major: u32, minor: u32) -> Self {
        Self { major, minor, patch: None }
    }

    /// Whether this version, as installed, certainly matches the request.
    pub(super) fn serves(self, requested: Self) -> bool {
        (self.major, self.minor) == (requested.major, requested.minor)
            && (requested.patch.is_none() || self.patch == requested.patch)
    }

    /// Whether this version may match the request; unknown parts match.
    pub(super) fn may_serve(self, requested: Self) -> bool {
        self.serves(Self { patch: self.patch.and(requested.patch), ..requested })
    }

    /// Whether a patch is part of it.
    pub(super) fn has_patch(self) -> bool {
        self.patch.is_some()
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)?;
        self.patch.map_or(Ok(()), |patch| write!(f, ".{patch}"))
    }
}

/// The package system of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum System {
    /// Debian or Ubuntu: apt.
    Debian,
    /// Alpine or busybox: no apt, no glibc, and ash as the shell.
    Alpine,
    /// Fedora, Rocky Linux, Red Hat's UBI and similar.
    Rpm,
    /// Empty: only what is copied in.
    Bare,
    /// Unknown from the reference.
    Unknown,
}

/// The Python of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Python {
    /// Installed, in this version.
    Known(Version),
    /// Installed; the version is unknown from the reference.
    Some,
    /// Not installed; apt's `python3` has this version, if known.
    Apt(Option<Version>),
    /// Not installed, and neither is apt.
    None,
    /// Possibly installed.
    Unknown,
}

/// The conda program of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CondaTool {
    /// `conda`.
    Conda,
    /// `micromamba`, whose environment is not active in `RUN`.
    Micromamba,
}

/// Facts about an image from its reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Base {
    pub(super) system: System,
    pub(super) python: Python,
    pub(super) conda: Option<CondaTool>,
    /// The user that its commands run as, if not root.
    pub(super) user: Option<&'static str>,
}

impl Base {
    const fn new(system: System, python: Python) -> Self {
        Self { system, python, conda: None, user: None }
    }

    /// The facts about an image that its reference tells.
    pub(super) fn of(reference: &str) -> Self {
        let parts = Parts::of(reference);
        let tag = parts.tag.unwrap_or_default();
        let repository = parts.name.parse::<Reference>();
        let name = repository.as_ref().map_or("", Reference::short_repository);
        let alpine = tag.split('-').any(|part| part.starts_with("alpine"));
        let debian = if alpine { System::Alpine } else { System::Debian };
        let conda = |tool, user| Self {
            conda: Some(tool),
            user,
            ..Self::new(if alpine { System::Alpine } else { System::Debian }, Python::Some)
        };
        match name {
            "scratch" => Self::new(System::Bare, Python::None),
            "alpine" | "busybox" => Self::new(System::Alpine, Python::None),
            "debian" | "ubuntu" | "buildpack-deps" | "nvidia/cuda" | "nvidia/cudagl" => {
                distribution(name, tag)
            }
            "python" => {
                let version = tag.split('-').next().and_then(Version::parse);
                Self::new(debian, version.map_or(Python::Some, Python::Known))
            }
            "continuumio/miniconda3"
            | "continuumio/anaconda3"
            | "condaforge/miniforge3"
            | "condaforge/mambaforge"
            | "pytorch/pytorch" => conda(CondaTool::Conda, None),
            "mambaorg/micromamba" => conda(CondaTool::Micromamba, Some("mambauser")),
            "rocm/pytorch" => {
                let version = tag.split('_').find_map(|part| Version::parse(part.strip_prefix("py")?));
                Self::new(System::Debian, version.map_or(Python::Some, Python::Known))
            }
            "tensorflow/tensorflow" | "huggingface/transformers-pytorch-gpu" => {
                Self::new(System::Debian, Python::Some)
            }
            "fedora" | "rockylinux" | "almalinux" | "centos" | "amazonlinux" | "oraclelinux" => {
                Self::new(System::Rpm, Python::None)
            }
            _ if name.starts_with("jupyter/") => conda(CondaTool::Conda, Some("jovyan")),
            _ if name.starts_with("nvidia/") && tag.contains("-py3") => {
                Self::new(System::Debian, Python::Some)
            }
            _ if name.starts_with("rocm/dev-ubuntu-") => {
                distribution("ubuntu", &name["rocm/dev-ubuntu-".len()..])
            }
            _ if name.starts_with("distroless/") => Self::new(System::Bare, Python::None),
            _ if alpine => Self::new(System::Alpine, Python::Unknown),
            _ => Self::new(System::Unknown, Python::Unknown),
        }
    }
}

/// A distribution's own image, with the version of its `python3` package.
fn distribution(name: &str, tag: &str) -> Base {
    const RELEASES: &[(&str, &[&str], Version)] = &[
        ("ubuntu", &["18.04", "bionic"], Version::of(3, 6)),
        ("ubuntu", &["20.04", "focal"], Version::of(3, 8)),
        ("ubuntu", &["22.04", "jammy"], Version::of(3, 10)),
        ("ubuntu", &["24.04", "noble"], Version::of(3, 12)),
        ("debian", &["10", "buster"], Version::of(3, 7)),
        ("debian", &["11", "bullseye"], Version::of(3, 9)),
        ("debian", &["12", "bookworm"], Version::of(3, 11)),
        ("debian", &["13", "trixie"], Version::of(3, 13)),
    ];
    if ["ubi", "rockylinux", "centos", "oraclelinux"].iter().any(|system| tag.contains(system)) {
        return Base::new(System::Rpm, Python::None);
    }
    let found = tag.split('-').find_map(|part| {
        RELEASES.iter().find(|(system, names, _)| {
            names.iter().any(|release| {
                let own = part == *release
                    || (*system == "debian"
                        && part.strip_prefix(release).is_some_and(|rest| rest.starts_with('.')));
                // CUDA's tags end in `ubuntu22.04`; a bare number is the release of the image's own name only.
                let of_cuda = part.strip_prefix("ubuntu").is_some_and(|part| part == *release);
                let word = !release.starts_with(|c: char| c.is_ascii_digit());
                (own && (word || *system == name)) || of_cuda
            })
        })
    });
    Base::new(System::Debian, Python::Apt(found.map(|(.., version)| *version)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_derived_from_references() {
        let known = |reference| Base::of(reference);
        let cases: Vec<String> = [
            "python:3.11-slim",
            "python:3.11.9-slim-bookworm",
            "python:3.12-alpine3.20",
            "python",
            "python:latest",
            "docker.io/library/python:3.10@sha256:00",
            "debian:12-slim",
            "debian:bookworm",
            "debian:12.5",
            "debian",
            "ubuntu:22.04",
            "ubuntu:noble-20240605",
            "nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04",
            "nvidia/cuda:12.6.3-cudnn-devel-ubi9",
            "registry.example.com:5000/ubuntu:24.04",
            "pytorch/pytorch:2.4.0-cuda12.4-cudnn9-runtime",
            "nvcr.io/nvidia/pytorch:25.12-py3",
            "rocm/pytorch:rocm7.2.4_ubuntu24.04_py3.12_pytorch_release_2.10.0",
            "rocm/dev-ubuntu-22.04:6.2",
            "tensorflow/tensorflow:2.16.1-gpu",
            "mambaorg/micromamba:2",
            "quay.io/jupyter/scipy-notebook:2024-10-07",
            "continuumio/miniconda3:24.7.1-0",
            "alpine:3.20",
            "busybox:1.36",
            "scratch",
            "rockylinux:9",
            "team/own:1",
        ]
        .into_iter()
        .map(|reference| {
            let base = known(reference);
            let python = match base.python {
                Python::Known(version) => version.to_string(),
                Python::Apt(Some(version)) => format!("apt {version}"),
                other => format!("{other:?}"),
            };
            let conda = base.conda.map_or(String::new(), |tool| format!(" {tool:?}"));
            let user = base.user.map_or(String::new(), |user| format!(" as {user}"));
            format!("{reference}: {:?}, Python {python}{conda}{user}", base.system)
        })
        .collect();
        insta::assert_snapshot!(cases.join("\n"));
    }

    #[test]
    fn versions_compare_as_far_as_they_are_known() {
        let version = |text| Version::parse(text).unwrap();
        assert!(version("3.11.9").serves(version("3.11")));
        assert!(!version("3.11").serves(version("3.11.9")));
        assert!(version("3.11").may_serve(version("3.11.9")));
        assert!(!version("3.11.8").may_serve(version("3.11.9")));
        assert!(!version("3.1").may_serve(version("3.11")));
        assert_eq!(Version::parse("3"), None);
        assert_eq!(Version::parse("3.11.1.1"), None);
        assert_eq!(Version::parse("3.x"), None);
    }
}
