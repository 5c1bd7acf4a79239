//! `jobc image build`: builds an image from a Dockerfile, with the built-in or an installed builder.

mod access;
mod agents;
mod context;
mod dockerfile_file;
mod embedded;
mod external;
pub(crate) mod failure;
mod findings;
mod generated;
pub(crate) mod host;
mod limits;
mod more;
mod options;
mod provenance;
mod proxies;
mod push;
mod results;
mod shared_cache;

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use jobc_image::build::access::Access;
use jobc_image::dockerfile::{Inspection, Rule};
use jobc_image::{Descriptor, Reference, Store};
use jobc_sys::error::{Error, Kind};
use serde_json::json;

use super::dockerfile_errors;
use crate::args::FormatArg;
use crate::outcome::Outcome;
use crate::runtime::args::image::{BuildArgs, BuilderArg};
use crate::runtime::commands::jobs::{Failure, Result};
use crate::runtime::message::{container_warning, interrupted_by};
use crate::terminal;
use agents::Agents;
use dockerfile_file::Dockerfile;
use embedded::EmbeddedBuild;
use external::ExternalBuilder;
use host::BuildHost;
use more::MoreOptions;
use options::BuildOptions;

pub(super) fn run(args: &BuildArgs, store: &Store) -> Result<ExitCode> {
    let agents = Agents::read(&args.access.ssh).map_err(Failure::usage_error)?;
    let host = BuildHost::read(args.plain_http, &args.more.ca).map_err(Failure::usage_error)?;
    let access = access::access(&args.access, &agents, &host);
    match context::fetch(args, &access, store)? {
        Err(code) => Ok(code),
        Ok(None) => build(&provenance::labeled(args, None), &access, &host, store),
        Ok(Some((given, fetched))) => {
            build(&provenance::labeled(&given, Some((args, &fetched))), &access, &host, store)
        }
    }
}

fn build(args: &BuildArgs, access: &Access<'_>, host: &BuildHost, store: &Store) -> Result<ExitCode> {
    let given = BuildOptions::read(args, host)?;
    if args.push && given.tags.is_empty() {
        let error = Error::new(Kind::Config, "`--push` needs a name").help("add `--tag REGISTRY/NAME:TAG`");
        return Err(Failure::usage_error(error));
    }
    let mut more = MoreOptions::read(&args.more, store).map_err(Failure::usage_error)?;
    let file = Dockerfile::find(args)?;
    if args.check {
        return check(args, &file, &given);
    }
    match args.builder {
        BuilderArg::Docker => return build_with(ExternalBuilder::Docker, args, &file, &given, &more, store),
        BuilderArg::Buildah => {
            return build_with(ExternalBuilder::Buildah, args, &file, &given, &more, store);
        }
        BuilderArg::Auto | BuilderArg::Embedded => {}
    }
    let mut images = Vec::new();
    for platform in &given.platforms {
        let inspection = BuildHost::inspect(&file.text, &given.args, args.target.as_deref(), platform);
        let Inspection { build, refusals, remarks, .. } = &inspection;
        let Some(build) = build else {
            let elsewhere = args.builder == BuilderArg::Auto
                && refusals.iter().all(|refusal| refusal.rule == Rule::Unsupported);
            let Some(other) = elsewhere.then(ExternalBuilder::installed).flatten() else {
                let outcome =
                    dockerfile_errors::show(&file.display_name(), &file.text, refusals, remarks, args.format);
                return Ok(ExitCode::from(outcome as u8));
            };
            for refusal in refusals {
                let text = format!("{}, so {} builds", refusal.message, other.name());
                terminal::eprint(&container_warning(&text));
            }
            return build_with(other, args, &file, &given, &more, store);
        };
        if !remarks.is_empty() && !args.quiet && images.is_empty() {
            dockerfile_errors::show(&file.display_name(), &file.text, &[], remarks, args.format);
        }
        let step = EmbeddedBuild {
            build,
            inspection: &inspection,
            args,
            file: &file,
            given: &given,
            platform,
            access,
            host,
        };
        match step.run(&mut more, store)? {
            Ok(descriptor) => images.push((platform.clone(), descriptor)),
            Err(code) => return Ok(code),
        }
    }
    let descriptor = match images.as_slice() {
        [(_, descriptor)] => descriptor.clone(),
        several => {
            let index = results::index(store, several)?;
            for tag in &given.tags {
                store.tag(tag, &index)?;
            }
            index
        }
    };
    let meter = args.meter();
    let on_progress = |progress| meter.report(&progress);
    shared_cache::export(store, &more.cache_to, &more.extras, args.plain_http, &on_progress)?;
    drop(meter);
    finish(args, &given, &more, &descriptor, store)
}

/// Reports what is wrong with the Dockerfile, without building it.
fn check(args: &BuildArgs, file: &Dockerfile, given: &BuildOptions) -> Result<ExitCode> {
    let mut outcome = Outcome::Success;
    for platform in &given.platforms {
        let inspection = BuildHost::inspect(&file.text, &given.args, args.target.as_deref(), platform);
        let Inspection { refusals, remarks, .. } = &inspection;
        // Another builder may be able to do what this one cannot.
        let (unsupported, errors): (Vec<_>, Vec<_>) =
            refusals.iter().cloned().partition(|refusal| refusal.rule == Rule::Unsupported);
        let remarks: Vec<_> = remarks.iter().cloned().chain(unsupported).collect();
        if !errors.is_empty() || !remarks.is_empty() {
            let name = file.display_name();
            dockerfile_errors::show(&name, &file.text, &errors, &remarks, args.format);
        }
        let Some(ignore) = embedded::read_ignore(args, file)? else {
            return Ok(ExitCode::from(Outcome::Errors as u8));
        };
        if findings::ignored(&inspection, &ignore, args, file) || !errors.is_empty() {
            outcome = Outcome::Errors;
            break;
        }
    }
    if outcome == Outcome::Success && args.format != FormatArg::Json && !args.quiet {
        terminal::eprint("jobc: checked; nothing was built\n");
    }
    Ok(ExitCode::from(outcome as u8))
}

/// Writes and pushes what is requested besides the image in the store, and prints what was built.
fn finish(
    args: &BuildArgs,
    given: &BuildOptions,
    more: &MoreOptions,
    descriptor: &Descriptor,
    store: &Store,
) -> Result<ExitCode> {
    let stopped = AtomicBool::new(false);
    let (done, signal) = embedded::run_interruptible(&stopped, || -> Result<()> {
        results::write(store, &args.more, more, descriptor, &given.tags, &given.platforms, &stopped)?;
        if args.push { push::push(args, &given.tags, descriptor, store) } else { Ok(()) }
    })?;
    if let Some(signal) = signal {
        return Ok(interrupted_by(signal, "the image is in the image store"));
    }
    done?;
    if !more.uses_stdout() {
        print_result(args, &given.tags, descriptor);
    }
    Ok(ExitCode::SUCCESS)
}

/// Builds with another builder.
fn build_with(
    other: ExternalBuilder,
    args: &BuildArgs,
    file: &Dockerfile,
    given: &BuildOptions,
    more: &MoreOptions,
    store: &Store,
) -> Result<ExitCode> {
    let unsupported = [
        (given.platforms.len() > 1, "several platforms"),
        (!more.cache_from.is_empty(), "`--cache-from`"),
        (!more.cache_to.is_empty(), "`--cache-to`"),
    ];
    if let Some((_, what)) = unsupported.iter().find(|(given, _)| *given) {
        let error = format!("jobc does not support {what} with {}", other.name());
        return Err(Failure::usage_error(
            Error::new(Kind::Unsupported, error).help("use `--builder embedded`, or leave it out"),
        ));
    }
    let descriptor = match other.build(args, file, given, store)? {
        Ok(descriptor) => descriptor,
        Err(code) => return Ok(code),
    };
    finish(args, given, more, &descriptor, store)
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
