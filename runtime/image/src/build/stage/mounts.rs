//! The mounts of `RUN --mount`: added to the key before a command runs, created when it runs.

use std::fs::{self, File};
use std::path::PathBuf;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::{Outcome, Stage, Taking, base, given_up};
use crate::build::cache::Key;
use crate::build::container::{Bound, What};
use crate::build::files::{Copy, Files, Taken};
use crate::build::work::Step;
use jobc_container::secret::Variables;
use jobc_dockerfile::ignore::Ignore;
use jobc_dockerfile::{Mount as Written, MountKind, Refusal, Sharing, Span};
use jobc_schema::digest::Digest;
use jobc_sys::error::Error;

/// The mounts of a command, variables filled in.
pub(super) struct Mounts(Vec<Mount>);

/// Mounts that are ready.
pub(super) struct Made {
    /// What config.json gets.
    pub(super) bounds: Vec<Bound>,
    /// Variables with secrets.
    pub(super) secrets: Variables,
    /// Locks of caches, held while the command runs.
    pub(super) locks: Vec<File>,
}

struct Mount {
    span: Span,
    target: Option<String>,
    read_only: bool,
    what: Kinds,
}

enum Kinds {
    Bind { files: Copied },
    Cache { id: String, sharing: Sharing, seed: Option<Copied>, mode: Option<u32>, owner: (u32, u32) },
    Tmpfs { size: Option<u64> },
    Secret { id: String, env: Option<String>, required: bool, mode: u32, owner: (u32, u32) },
}

/// Files that are copied to where they are mounted from.
struct Copied {
    source: String,
    from: Origin,
    /// What distinguishes them from others.
    key: Digest,
}

enum Origin {
    Context { listing: Digest },
    Other(Taking),
}

impl Mounts {
    /// Reads what a command wants mounted.
    pub(super) fn of(stage: &Stage<'_>, written: &[Written]) -> Outcome<Self> {
        written.iter().map(|mount| Mount::of(stage, mount)).collect::<Outcome<_>>().map(Self)
    }

    /// Adds to a key what a command may see of them. A secret's value is not in it, and neither is what a cache holds.
    pub(super) fn tell(&self, key: &mut Key) {
        for Mount { target, read_only, what, .. } in &self.0 {
            key.add(target.as_deref().unwrap_or_default());
            match what {
                Kinds::Bind { files } => key.add_all(["bind", files.key.hex(), &files.source]),
                Kinds::Cache { id, seed, .. } => {
                    key.add_all(["cache", id, seed.as_ref().map_or("", |seed| seed.key.hex())]);
                }
                Kinds::Tmpfs { size } => key.add(format!("tmpfs {size:?}")),
                Kinds::Secret { id, env, mode, owner, .. } => {
                    key.add(format!("secret {id} {env:?} {mode:o} {owner:?} {read_only}"));
                }
            }
        }
    }

    /// Makes them, in a step's directory or where caches are.
    pub(super) fn make(&self, stage: &Stage<'_>, step: &Step) -> Outcome<Made> {
        let mut made = Made { bounds: Vec::new(), secrets: Variables::default(), locks: Vec::new() };
        for (number, mount) in self.0.iter().enumerate() {
            mount.make(stage, step, number, &mut made)?;
        }
        // A mount hides what was mounted below it before, so outer ones come first.
        made.bounds.sort_by_key(|bound| bound.target.split('/').filter(|name| !name.is_empty()).count());
        Ok(made)
    }
}

impl Mount {
    fn of(stage: &Stage<'_>, written: &Written) -> Outcome<Self> {
        let expand = |word: &Option<_>| word.as_ref().map(|word| stage.variables.expand(word)).transpose();
        let target = expand(&written.target)?.map(|target| stage.done.settings.absolute(&target));
        if target.as_deref() == Some("/") {
            return Err(Refusal::new(written.span.clone(), "a mount target cannot be the root").into());
        }
        let source = |source: &Option<_>| Ok::<_, Refusal>(expand(source)?.unwrap_or_else(|| "/".to_owned()));
        let what = match &written.kind {
            MountKind::Bind { from, source: path } => {
                Kinds::Bind { files: Copied::of(stage, from.as_ref(), source(path)?)? }
            }
            MountKind::Cache { id, sharing, from, source: path, mode, uid, gid } => Kinds::Cache {
                id: expand(id)?.or_else(|| target.clone()).unwrap_or_default(),
                sharing: *sharing,
                seed: from.as_ref().map(|from| Copied::of(stage, Some(from), source(path)?)).transpose()?,
                mode: *mode,
                owner: (uid.unwrap_or(0), gid.unwrap_or(0)),
            },
            MountKind::Tmpfs { size } => Kinds::Tmpfs { size: *size },
            MountKind::Secret { id, env, required, mode, uid, gid } => Kinds::Secret {
                id: stage.variables.expand(id)?,
                env: env.clone(),
                required: *required,
                mode: mode.unwrap_or(0o400),
                owner: (uid.unwrap_or(0), gid.unwrap_or(0)),
            },
        };
        Ok(Self { span: written.span.clone(), target, read_only: written.read_only, what })
    }

    fn make(&self, stage: &Stage<'_>, step: &Step, number: usize, made: &mut Made) -> Outcome<()> {
        let bound = |target: &str, what| Bound { target: target.to_owned(), what, read_only: self.read_only };
        let target = self.target.as_deref();
        match &self.what {
            Kinds::Tmpfs { size } => {
                made.bounds.extend(target.map(|target| bound(target, What::Memory(*size))));
            }
            Kinds::Bind { files } => {
                let path = files.copy(stage, &step.path().join(format!("bind-{number}")))?;
                made.bounds.extend(target.map(|target| bound(target, What::Path(path))));
            }
            Kinds::Cache { id, sharing, seed, mode, owner } => {
                let (path, lock) = cache(stage, id, *sharing)?;
                if !path.exists() {
                    begin_cache(stage, step, number, &path, seed.as_ref(), mode.unwrap_or(0o755), *owner)?;
                }
                if *sharing == Sharing::Shared {
                    let _ = flock(&lock, FlockOperation::LockShared);
                }
                made.locks.push(lock);
                let path = path.join("upper/it");
                made.bounds.extend(target.map(|target| bound(target, What::Path(path))));
            }
            Kinds::Secret { id, env, required, mode, owner } => {
                let Some(secret) = stage.builder.request.secrets.get(id) else {
                    if *required {
                        let refusal =
                            Refusal::new(self.span.clone(), format!("the secret `{id}` is missing"));
                        return Err(refusal.help(format!("pass it with `--secret id={id},src=FILE`")).into());
                    }
                    return Ok(());
                };
                if let Some(name) = env {
                    made.secrets.push(name, secret)?;
                }
                let usual = format!("/run/secrets/{id}");
                let target = target.or_else(|| env.is_none().then_some(usual.as_str()));
                if let Some(target) = target {
                    let name = format!("{}-{number}", step.id());
                    let path = stage.builder.work()?.secret(&name, secret, *mode, *owner)?;
                    made.bounds.push(Bound {
                        target: target.to_owned(),
                        what: What::Path(path),
                        read_only: true,
                    });
                }
            }
        }
        Ok(())
    }
}

impl Copied {
    fn of(stage: &Stage<'_>, from: Option<&jobc_dockerfile::From>, source: String) -> Outcome<Self> {
        if let Some(from) = from {
            let taking = base::taking(stage.builder, from)?;
            return Ok(Self { source, key: taking.key.clone(), from: Origin::Other(taking) });
        }
        let mut key = Key::of("bind");
        let sources = [Taken::Path(source.clone())];
        let listing = stage.builder.tell(&mut key, &context(stage)?, &sources, &Ignore::default())?;
        Ok(Self { source, key: key.finish(), from: Origin::Context { listing } })
    }

    /// Copies the files into a new directory; returns what is to be mounted: the directory, or the file in it.
    fn copy(&self, stage: &Stage<'_>, directory: &std::path::Path) -> Outcome<PathBuf> {
        let upper = directory.join("upper");
        for directory in [directory, &upper, &directory.join("work")] {
            fs::create_dir(directory).map_err(|error| stage.builder.store.full("write to", &error))?;
        }
        let (from, listing, owner) = match &self.from {
            Origin::Context { listing } => (context(stage)?, Some(listing.clone()), Some((0, 0))),
            Origin::Other(taking) => (Files::Layers(stage.builder.directories(&taking.layers)?), None, None),
        };
        stage.order_copy(&Copy {
            step: directory.to_owned(),
            from,
            sources: vec![Taken::Path(self.source.clone())],
            target: "/it".to_owned(),
            owner,
            listing,
            ..Copy::default()
        })?;
        Ok(upper.join("it"))
    }
}

fn context(stage: &Stage<'_>) -> Outcome<Files> {
    Ok(Files::Context { directory: stage.builder.context()?, ignore: stage.builder.request.ignore.clone() })
}

/// The directory of a cache, which may not be there yet, and its lock, held alone.
fn cache(stage: &Stage<'_>, id: &str, sharing: Sharing) -> Outcome<(PathBuf, File)> {
    let all = stage.builder.store.root().join("cache/mounts");
    let full = |error: std::io::Error| stage.builder.store.full("write to", &error);
    fs::create_dir_all(&all).map_err(full)?;
    let name = Digest::of(id.as_bytes());
    for number in 0_u32.. {
        let again = if number == 0 { String::new() } else { format!("-{number}") };
        let path = all.join(format!("{}{again}.lock", name.hex()));
        let lock = File::options().read(true).write(true).create(true).truncate(false).open(path);
        let lock = lock.map_err(full)?;
        loop {
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok((all.join(format!("{}{again}", name.hex())), lock)),
                Err(Errno::WOULDBLOCK) if sharing == Sharing::Private => break,
                Err(Errno::WOULDBLOCK) if sharing == Sharing::Shared => {
                    // Its users share the lock; a process that creates it holds it exclusively for a moment.
                    if flock(&lock, FlockOperation::NonBlockingLockShared).is_ok() {
                        return Ok((all.join(format!("{}{again}", name.hex())), lock));
                    }
                }
                Err(Errno::WOULDBLOCK | Errno::INTR) => {}
                Err(errno) => return Err(Error::machine("lock a cache", errno).into()),
            }
            if stage.builder.is_given_up() {
                return Err(given_up().into());
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
    unreachable!("a cache has no 2^32 users")
}

/// Creates the directory of a cache, with its initial content.
fn begin_cache(
    stage: &Stage<'_>,
    step: &Step,
    number: usize,
    path: &std::path::Path,
    seed: Option<&Copied>,
    mode: u32,
    owner: (u32, u32),
) -> Outcome<()> {
    let full = |error: std::io::Error| stage.builder.store.full("write to", &error);
    let directory = step.path().join(format!("cache-{number}"));
    if let Some(seed) = seed {
        seed.copy(stage, &directory)?;
    } else {
        for directory in [&directory, &directory.join("upper"), &directory.join("work")] {
            fs::create_dir(directory).map_err(full)?;
        }
        stage.order_copy(&Copy {
            step: directory.clone(),
            target: "/it".to_owned(),
            owner: Some(owner),
            mode: Some(mode),
            ..Copy::default()
        })?;
    }
    // The whole directory, which is this user's own: another id's could not be moved.
    fs::rename(&directory, path).map_err(full)?;
    Ok(())
}
