//! `jobc lock`: writes down, beside the job file, the digest that each of its images' names stands for.
//!
//! What is written once stays until it is asked for again, so a job runs in the same images on every day. Names of other jobs
//! of the folder stay too: the file is theirs as well.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::compile::plan;
use jobc_compiler::diagnostic::Sink;
use jobc_compiler::lock::{FILE_NAME, Lock, Locking};
use jobc_compiler::suggest;
use jobc_image::{Digest, Reference};
use jobc_sys::error::{Error, Kind};
use jobc_sys::write_atomic::{Durability, write_atomic};

use crate::args::lock::LockArgs;
use crate::args::{Args, JobArgs};
use crate::commands::image;
use crate::input::{Input, shorten};
use crate::outcome::Outcome;
use crate::{report, terminal};

/// The comment that the file begins with.
const HEAD: &str = "\
# What the name of each image stood for when `jobc lock` was run. Keep this file with the job: `jobc run --locked` takes these
# images and no others. `jobc lock --update IMAGE` asks again.
";

pub(crate) fn run(lock: &LockArgs, args: &Args) -> Outcome {
    let job = job_args(lock);
    let mut input = match Input::read(&job) {
        Ok(input) => input,
        Err(why) => return super::unusable(&why),
    };
    let mut sink = Sink::new();
    let mut sources = std::mem::take(&mut input.sources);
    let not_yet = |_: &str| Utf8PathBuf::from("../../..");
    let mut request = input.request(&job, &not_yet);
    let known = Lock::read(Locking::Followed, request.job, request.files, &mut sources, &mut sink);
    // By their names alone: what they are locked to now says nothing about which there are.
    request.locking = Locking::Ignored;
    let planned = plan(&mut sources, &request, &mut sink);
    let (Some(known), Some(planned)) = (known, planned) else {
        return report::findings(&sources, sink, args.format, false);
    };
    let (names, old) = (planned.images, known.into_digests());
    let path = input.folder.join(FILE_NAME);
    if lock.check {
        return check(&names, &old, &path);
    }
    if let Some(unknown) = lock.update.iter().find(|name| !names.contains(*name)) {
        let near = suggest::nearest(unknown, names.iter().map(String::as_str));
        let help = near.map_or_else(
            || format!("it names {}", suggest::list(names.iter().map(String::as_str))),
            |near| format!("did you mean `{near}`?"),
        );
        let error = Error::new(Kind::Config, format!("the job names no image `{unknown}`")).help(help);
        terminal::eprint(&report::container_error(&error));
        return Outcome::WrongUse;
    }
    let again = |name: &String| lock.update_all || lock.update.contains(name);
    let mut digests = old.clone();
    for name in names.iter().filter(|name| again(name) || !old.contains_key(*name)) {
        match look_up(name, lock) {
            Ok(digest) => drop(digests.insert(name.clone(), digest.to_string())),
            Err(error) => {
                terminal::eprint(&report::container_error(&error));
                return Outcome::Fault;
            }
        }
    }
    terminal::print(&told(&old, &digests));
    if digests == old && path.exists() {
        return Outcome::Fine;
    }
    match write_atomic(path.as_std_path(), written(&digests).as_bytes(), 0o666, Durability::Disk) {
        Ok(()) => Outcome::Fine,
        Err(error) => {
            terminal::eprint(&report::cannot_write(&shorten(&path), &error));
            Outcome::Fault
        }
    }
}

fn job_args(lock: &LockArgs) -> JobArgs {
    JobArgs {
        job: lock.job.clone(),
        set: lock.set.clone(),
        params: lock.params.clone(),
        target: Vec::new(),
        backend: Vec::new(),
        targets: lock.targets.clone(),
        allow_lossy: false,
        locked: false,
        gpu_injection: None,
    }
}

/// Says which names lack a digest.
fn check<'a>(
    names: impl IntoIterator<Item = &'a String>,
    old: &BTreeMap<String, String>,
    path: &Utf8Path,
) -> Outcome {
    let missing: Vec<&str> =
        names.into_iter().filter(|name| !old.contains_key(*name)).map(String::as_str).collect();
    if missing.is_empty() {
        return Outcome::Fine;
    }
    let missing = suggest::list(missing.iter().copied());
    let what = if path.exists() { "lacks" } else { "is not there, and would hold" };
    terminal::eprint(&format!(
        "jobc: `{}` {what} {missing}; `jobc lock` adds what is missing\n",
        shorten(path)
    ));
    Outcome::Errors
}

/// What a name stands for now: by its registry, or by the store where that is asked for or the registry cannot say.
fn look_up(name: &str, lock: &LockArgs) -> Result<Digest, Error> {
    let reference: Reference = name.parse()?;
    let here = || -> Result<Option<Digest>, Error> {
        let store = image::open(lock.image_root.as_deref())?;
        Ok(store.find(&reference)?.map(|descriptor| descriptor.digest))
    };
    if lock.local {
        return here()?.ok_or_else(|| {
            Error::new(Kind::State, format!("there is no image `{}` here", reference.familiar()))
                .help("bring it in with `jobc image pull` or `jobc image import`")
        });
    }
    match ask(&reference, lock.plain_http) {
        Ok(digest) => Ok(digest),
        Err(error) => match here()? {
            Some(digest) => {
                let text =
                    format!("{error}; `{}` is locked to the image of that name here", reference.familiar());
                terminal::eprint(&report::container_warning(&text));
                Ok(digest)
            }
            None => Err(error),
        },
    }
}

#[cfg(feature = "registry")]
fn ask(reference: &Reference, plain_http: bool) -> Result<Digest, Error> {
    Ok(crate::registries::client(plain_http)?.resolve(reference)?.digest)
}

#[cfg(not(feature = "registry"))]
fn ask(_: &Reference, _: bool) -> Result<Digest, Error> {
    Err(crate::registries::absent())
}

/// What became of each name, a line each.
fn told(old: &BTreeMap<String, String>, new: &BTreeMap<String, String>) -> String {
    new.iter().fold(String::new(), |mut out, (name, digest)| {
        let how = match old.get(name) {
            None => "new",
            Some(before) if before == digest => "as it was",
            Some(_) => "changed",
        };
        let _ = writeln!(out, "{name} {digest} ({how})");
        out
    })
}

/// The file's text.
fn written(digests: &BTreeMap<String, String>) -> String {
    let mut text = format!("{HEAD}version: 1\n");
    if digests.is_empty() {
        return text + "images: {}\n";
    }
    text += "images:\n";
    for (name, digest) in digests {
        // A name of an image has no character that would end the quotes.
        let _ = writeln!(text, "  \"{name}\": {digest}");
    }
    text
}
