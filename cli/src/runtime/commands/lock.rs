//! `jobc lock`: records the digest of each image and of each template from Git in a file next to the job file.
//!
//! An entry stays until an update is requested, so a job always runs in the same images. Entries of other jobs of the
//! directory stay too, since they share the file.

mod templates;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::compile::{self, Request, plan};
use jobc_compiler::diagnostic::Sink;
use jobc_compiler::lock::{FILE_NAME, Lock, Locked, Locking};
use jobc_compiler::suggest;
use jobc_image::{Digest, Reference};
use jobc_sys::error::{Error, Kind};
use jobc_sys::write_atomic::{Durability, write_atomic};

use crate::args::{FormatArg, JobArgs};
use crate::input::{Input, find_targets, shorten};
use crate::outcome::Outcome;
use crate::runtime::args::lock::LockArgs;
use crate::runtime::commands::image;
use crate::runtime::message::{container_error, container_warning};
use crate::runtime::signatures;
use crate::{report, terminal};

/// The comment at the start of the file.
const HEADER: &str = "\
# What names of images and templates stood for when `jobc lock` was run. Keep this file with the job: `jobc run --locked`
# takes these images and no others. `jobc lock --update NAME` asks again.
";

pub(crate) fn run(lock: &LockArgs, format: FormatArg) -> Outcome {
    let job = job_args(lock);
    let mut input = match Input::read(&job) {
        Ok(input) => input,
        Err(why) => return crate::commands::report_input_error(&why),
    };
    let mut sink = Sink::new();
    let mut sources = std::mem::take(&mut input.sources);
    let not_yet = |_: &str| Utf8PathBuf::from("../../..");
    let request = input.request(&job, &not_yet);
    let known = Lock::read(Locking::Followed, request.job, request.files, &mut sources, &mut sink);
    let Some(old) = known.map(Lock::into_locked) else {
        return report::findings(&sources, sink, format, false);
    };
    let path = input.directory.join(FILE_NAME);
    let again = |name: &str| lock.update_all || lock.update.iter().any(|update| update == name);
    let mut new = old.clone();
    let templates = if lock.check {
        templates::references(&request, &sources, &old).into_keys().collect()
    } else {
        match templates::lock(&request, &sources, &mut new, &again, &mut sink) {
            Some(names) => names,
            None => return report::findings(&sources, sink, format, false),
        }
    };
    if lock.check && templates.iter().any(|name| !old.templates.contains_key(name)) {
        return check(templates.iter().filter(|name| !old.templates.contains_key(*name)), &path);
    }
    // By name only: existing lock entries must not change which images the job uses.
    let files = templates::WithLock { files: request.files, text: lock_file_text(&new) };
    let request = Request { locking: Locking::Ignored, files: &files, ..request };
    let Some(planned) = plan(&mut sources, &request, &mut sink).filter(|_| !sink.has_errors()) else {
        return report::findings(&sources, sink, format, false);
    };
    let names = planned.images.clone();
    if lock.check {
        return check(names.iter().filter(|name| !old.images.contains_key(*name)), &path);
    }
    if let Some(unknown) =
        lock.update.iter().find(|name| !names.contains(*name) && !templates.contains(*name))
    {
        terminal::eprint(&container_error(&unknown_name(unknown, &names, &templates)));
        return Outcome::UsageError;
    }
    for name in names.iter().filter(|name| again(name) || !old.images.contains_key(*name)) {
        match look_up(name, lock) {
            Ok(digest) => drop(new.images.insert(name.clone(), digest.to_string())),
            Err(error) => {
                terminal::eprint(&container_error(&error));
                return Outcome::SystemError;
            }
        }
    }
    let targets = job.targets.clone().or_else(|| find_targets(&input.directory));
    match signatures::findings_of_lock(
        &planned.jobs,
        targets.as_deref().and_then(Utf8Path::parent),
        &new.images,
    ) {
        Ok(findings) if findings.is_empty() => {}
        Ok(findings) => {
            compile::report(&sources, &planned, findings, &mut sink);
            return report::findings(&sources, sink, format, false);
        }
        Err(error) => {
            terminal::eprint(&container_error(&error));
            return Outcome::SystemError;
        }
    }
    terminal::print(&describe_changes(&old, &new));
    if new == old && path.exists() {
        return Outcome::Success;
    }
    match write_atomic(path.as_std_path(), lock_file_text(&new).as_bytes(), 0o666, Durability::Disk) {
        Ok(()) => Outcome::Success,
        Err(error) => {
            terminal::eprint(&report::cannot_write(&shorten(&path), &error));
            Outcome::SystemError
        }
    }
}

fn job_args(lock: &LockArgs) -> JobArgs {
    JobArgs {
        job: lock.job.clone(),
        set: lock.set.clone(),
        params: lock.params.clone(),
        targets: lock.targets.clone(),
        ..JobArgs::default()
    }
}

/// The error for a name to update that the job does not have.
fn unknown_name(unknown: &str, images: &BTreeSet<String>, templates: &BTreeSet<String>) -> Error {
    let names = || images.iter().chain(templates).map(String::as_str);
    let help = suggest::nearest(unknown, names()).map_or_else(
        || format!("its images are {}", suggest::list(names())),
        |near| format!("did you mean `{near}`?"),
    );
    Error::new(Kind::Config, format!("the job has no image `{unknown}`")).help(help)
}

/// Prints which names have no digest.
fn check<'a>(missing: impl Iterator<Item = &'a String>, path: &Utf8Path) -> Outcome {
    let missing: Vec<&str> = missing.map(String::as_str).collect();
    if missing.is_empty() {
        return Outcome::Success;
    }
    let missing = suggest::list(missing.iter().copied());
    let what = if path.exists() { "does not have" } else { "does not exist and would have" };
    terminal::eprint(&format!(
        "jobc: `{}` {what} {missing}; run `jobc lock` to add what is missing\n",
        shorten(path)
    ));
    Outcome::Errors
}

/// The current digest of a name: from its registry, or from the store if that is requested or the registry fails.
fn look_up(name: &str, lock: &LockArgs) -> Result<Digest, Error> {
    let reference: Reference = name.parse()?;
    let here = || -> Result<Option<Digest>, Error> {
        let store = image::open(lock.image_root.as_deref())?;
        Ok(store.find(&reference)?.map(|descriptor| descriptor.digest))
    };
    if lock.local {
        return here()?.ok_or_else(|| {
            Error::new(Kind::State, format!("the image `{}` is not in the image store", reference.familiar()))
                .help("add it with `jobc image pull` or `jobc image import`")
        });
    }
    match resolve_digest(&reference, lock.plain_http) {
        Ok(digest) => Ok(digest),
        Err(error) => match here()? {
            Some(digest) => {
                let text = format!(
                    "{error}; locked `{}` to the image of that name in the image store",
                    reference.familiar()
                );
                terminal::eprint(&container_warning(&text));
                Ok(digest)
            }
            None => Err(error),
        },
    }
}

fn resolve_digest(reference: &Reference, plain_http: bool) -> Result<Digest, Error> {
    Ok(crate::runtime::registries::client(plain_http)?.resolve(reference)?.digest)
}

/// What happened to each name, one per line.
fn describe_changes(old: &Locked, new: &Locked) -> String {
    fn how<T: PartialEq>(before: Option<&T>, now: &T) -> &'static str {
        match before {
            None => "new",
            Some(before) if before == now => "unchanged",
            Some(_) => "changed",
        }
    }
    let images = new.images.iter().map(|(name, digest)| (name, digest, how(old.images.get(name), digest)));
    let templates =
        new.templates.iter().map(|(name, entry)| (name, &entry.commit, how(old.templates.get(name), entry)));
    images.chain(templates).fold(String::new(), |mut out, (name, what, how)| {
        let _ = writeln!(out, "{name} {what} ({how})");
        out
    })
}

/// The file's text.
fn lock_file_text(locked: &Locked) -> String {
    let mut text = format!("{HEADER}version: 1\n");
    text += if locked.images.is_empty() { "images: {}\n" } else { "images:\n" };
    for (name, digest) in &locked.images {
        // The name of an image has no character that would end the quotes.
        let _ = writeln!(text, "  \"{name}\": {digest}");
    }
    if !locked.templates.is_empty() {
        text += "templates:\n";
    }
    for (name, entry) in &locked.templates {
        // The same goes for names of templates; a commit of digits only would be parsed as a number.
        let _ =
            writeln!(text, "  \"{name}\":\n    commit: \"{}\"\n    digest: {}", entry.commit, entry.digest);
    }
    text
}
