//! `jobc image build`: builds an image from a Dockerfile, with the built-in or an installed builder.

mod access;
mod agents;
mod context;
mod embedded;
mod external;
mod options;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use camino::Utf8PathBuf;
use jobc_image::build::access::Access;
use jobc_image::dockerfile::{self, Inspection, Options, Rule};
use jobc_image::{Descriptor, Platform, Reference, Store};
use jobc_sys::error::{Error, Kind};
use serde_json::json;

use super::dockerfile_errors;
use crate::args::FormatArg;
use crate::args::image::{BuildArgs, BuilderArg};
use crate::commands::jobs::{Failure, Result};
use crate::input::reason;
use crate::outcome::Outcome;
use crate::report::container_warning;
use crate::terminal;
pub(crate) use access::default_access;
use agents::Agents;
use external::ExternalBuilder;
use options::BuildOptions;

/// A Dockerfile, and where it was found.
struct Dockerfile {
    /// None if it was read from stdin.
    path: Option<PathBuf>,
    text: Vec<u8>,
}

pub(super) fn run(args: &BuildArgs, store: &Store) -> Result<ExitCode> {
    let agents = Agents::read(&args.access.ssh).map_err(Failure::usage_error)?;
    let access = access::access(&args.access, &agents);
    match context::fetch(args, &access, store)? {
        None => build(args, &access, store),
        Some((args, _fetched)) => build(&args, &access, store),
    }
}

fn build(args: &BuildArgs, access: &Access<'_>, store: &Store) -> Result<ExitCode> {
    let given = BuildOptions::read(args)?;
    let file = find_dockerfile(args)?;
    match args.builder {
        BuilderArg::Docker => return build_with(ExternalBuilder::Docker, args, &file, &given, store),
        BuilderArg::Buildah => return build_with(ExternalBuilder::Buildah, args, &file, &given, store),
        BuilderArg::Auto | BuilderArg::Embedded => {}
    }
    let here = Platform::here().to_string();
    let platform = given.platform.to_string();
    let options = Options {
        args: &given.args,
        target: args.target.as_deref(),
        platform: &platform,
        build_platform: &here,
    };
    let Inspection { build, refusals, remarks, .. } = dockerfile::inspect(&file.text, &options);
    let Some(build) = build else {
        let elsewhere = args.builder == BuilderArg::Auto
            && refusals.iter().all(|refusal| refusal.rule == Rule::Unsupported);
        let Some(other) = elsewhere.then(ExternalBuilder::installed).flatten() else {
            let outcome =
                dockerfile_errors::show(&file.display_name(), &file.text, &refusals, &remarks, args.format);
            return Ok(ExitCode::from(outcome as u8));
        };
        for refusal in &refusals {
            let text = format!("{}, so {} builds", refusal.message, other.name());
            terminal::eprint(&container_warning(&text));
        }
        return build_with(other, args, &file, &given, store);
    };
    if !remarks.is_empty() && !args.quiet {
        dockerfile_errors::show(&file.display_name(), &file.text, &[], &remarks, args.format);
    }
    embedded::build(&build, args, &file, given, access, store)
}

/// Builds with another builder.
fn build_with(
    other: ExternalBuilder,
    args: &BuildArgs,
    file: &Dockerfile,
    given: &BuildOptions,
    store: &Store,
) -> Result<ExitCode> {
    let Some(descriptor) = other.build(args, file, given, store)? else {
        return Ok(ExitCode::from(Outcome::Errors as u8));
    };
    print_result(args, &given.tags, &descriptor);
    Ok(ExitCode::SUCCESS)
}

/// The Dockerfile that is named, or that of the context.
fn find_dockerfile(args: &BuildArgs) -> Result<Dockerfile> {
    if args.file.as_deref() == Some(Path::new("-")) {
        let mut text = Vec::new();
        std::io::stdin().read_to_end(&mut text).map_err(|error| {
            Error::new(Kind::System, format!("cannot read standard input: {}", reason(&error)))
        })?;
        return Ok(Dockerfile { path: None, text });
    }
    let usual = || {
        let names = ["Dockerfile", "Containerfile"].map(|name| args.context.join(name));
        names.iter().find(|path| path.exists()).unwrap_or(&names[0]).clone()
    };
    let path = args.file.clone().unwrap_or_else(usual);
    let text = read(&path)?;
    Ok(Dockerfile { path: Some(path), text })
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| {
        let error = Error::new(Kind::Config, format!("cannot read `{}`: {}", path.display(), reason(&error)));
        Failure::usage_error(
            error.help("name the Dockerfile with `-f`, and the directory that it copies from"),
        )
    })
}

impl Dockerfile {
    /// Its name in findings.
    fn display_name(&self) -> Utf8PathBuf {
        self.path.as_ref().map_or_else(|| "<stdin>".into(), |path| path.to_string_lossy().into_owned().into())
    }
}

/// Prints what was built.
fn print_result(args: &BuildArgs, tags: &[Reference], descriptor: &Descriptor) {
    if args.format == FormatArg::Json {
        let names: Vec<String> = tags.iter().map(ToString::to_string).collect();
        let object = json!({"event": "image", "names": names, "digest": descriptor.digest});
        terminal::print(&format!("{object}\n"));
        return;
    }
    if args.quiet || tags.is_empty() {
        terminal::print(&format!("{}\n", descriptor.digest));
    } else {
        for tag in tags {
            terminal::print(&format!("{}\n", tag.at(&descriptor.digest).familiar()));
        }
    }
}
