//! The mounts of `RUN --mount`: added to the key before a command runs, created when it runs.

use std::fs::{self, File};
use std::path::PathBuf;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::{FileOrigin, Stage, StepOutcome, base, canceled};
use crate::build::agent::AgentSocket;
use crate::build::cache::Key;
use crate::build::container::{CommandMount, MountSource};
use crate::build::files::{CopyOrigin, CopyRequest, CopySource};
use crate::build::work::StepDirectory;
use jobc_container::secret::SecretEnvironment;
use jobc_dockerfile::ignore::Ignore;
use jobc_dockerfile::{Mount as Written, MountKind, Refusal, Sharing, Span};
use jobc_schema::digest::Digest;
use jobc_schema::permissions::Permissions;
use jobc_sys::error::{Error, Kind as ErrorKind};

/// The id of an agent that is not named.
const DEFAULT_AGENT: &str = "default";

/// The mounts of a command, variables filled in.
pub(super) struct Mounts(Vec<Mount>);

/// Mounts that are ready.
pub(super) struct ReadyMounts {
    /// The mounts in config.json.
    pub(super) mounts: Vec<CommandMount>,
    /// Variables with secrets.
    pub(super) secrets: SecretEnvironment,
    /// Locks of caches, held while the command runs.
    pub(super) locks: Vec<File>,
    /// Sockets of agents, served while the command runs.
    pub(super) agents: Vec<AgentSocket>,
    /// Further variables, `NAME=value`.
    pub(super) variables: Vec<String>,
}

struct Mount {
    span: Span,
    target: Option<String>,
    read_only: bool,
    details: MountDetails,
}

enum MountDetails {
    Bind { files: MountFiles },
    Cache { id: String, sharing: Sharing, seed: Option<MountFiles>, mode: Option<u32>, owner: (u32, u32) },
    Tmpfs { size: Option<u64> },
    Secret { id: String, env: Option<String>, required: bool, mode: u32, owner: (u32, u32) },
    Ssh { id: String, required: bool, mode: u32, owner: (u32, u32) },
}

/// Files that are copied to where they are mounted from.
struct MountFiles {
    source: String,
    from: Origin,
    /// The part of the cache key for them.
    key: Digest,
}

enum Origin {
    Context { listing: Digest },
    Other(FileOrigin),
}

impl Mounts {
    /// Reads what a command wants mounted.
    pub(super) fn of(stage: &Stage<'_>, written: &[Written]) -> StepOutcome<Self> {
        written.iter().map(|mount| Mount::of(stage, mount)).collect::<StepOutcome<_>>().map(Self)
    }

    /// Adds to a key what a command may see of them. A secret's value is not in it, and neither is what a cache holds.
    pub(super) fn add_to_key(&self, key: &mut Key) {
        for Mount { target, read_only, details: what, .. } in &self.0 {
            key.add(target.as_deref().unwrap_or_default());
            match what {
                MountDetails::Bind { files } => key.add_all(["bind", files.key.hex(), &files.source]),
                MountDetails::Cache { id, seed, .. } => {
                    key.add_all(["cache", id, seed.as_ref().map_or("", |seed| seed.key.hex())]);
                }
                MountDetails::Tmpfs { size } => key.add(format!("tmpfs {size:?}")),
                MountDetails::Secret { id, env, mode, owner, .. } => {
                    key.add(format!("secret {id} {env:?} {mode:o} {owner:?} {read_only}"));
                }
                MountDetails::Ssh { id, mode, owner, .. } => {
                    key.add(format!("ssh {id} {mode:o} {owner:?}"));
                }
            }
        }
    }

    /// Creates them in a step's directory, or in the caches' directory.
    pub(super) fn create(&self, stage: &Stage<'_>, step: &StepDirectory) -> StepOutcome<ReadyMounts> {
        let mut made = ReadyMounts {
            mounts: Vec::new(),
            secrets: SecretEnvironment::default(),
            locks: Vec::new(),
            agents: Vec::new(),
            variables: Vec::new(),
        };
        for (number, mount) in self.0.iter().enumerate() {
            mount.create(stage, step, number, &mut made)?;
        }
        // A mount hides what was mounted below it before, so outer ones come first.
        made.mounts.sort_by_key(|bound| bound.target.split('/').filter(|name| !name.is_empty()).count());
        Ok(made)
    }
}

impl Mount {
    fn of(stage: &Stage<'_>, written: &Written) -> StepOutcome<Self> {
        let written = &stage.variables.mount(written)?;
        let expand = |word: &Option<_>| word.as_ref().map(|word| stage.variables.expand(word)).transpose();
        let target = expand(&written.target)?.map(|target| stage.result.settings.absolute(&target));
        if target.as_deref() == Some("/") {
            return Err(Refusal::new(written.span.clone(), "a mount target cannot be the root").into());
        }
        let source = |source: &Option<_>| Ok::<_, Refusal>(expand(source)?.unwrap_or_else(|| "/".to_owned()));
        let what = match &written.kind {
            MountKind::Bind { from, source: path } => {
                MountDetails::Bind { files: MountFiles::of(stage, from.as_ref(), source(path)?)? }
            }
            MountKind::Cache { id, sharing, from, source: path, mode, uid, gid } => MountDetails::Cache {
                id: expand(id)?.or_else(|| target.clone()).unwrap_or_default(),
                sharing: *sharing,
                seed: from
                    .as_ref()
                    .map(|from| MountFiles::of(stage, Some(from), source(path)?))
                    .transpose()?,
                mode: *mode,
                owner: (uid.unwrap_or(0), gid.unwrap_or(0)),
            },
            MountKind::Tmpfs { size } => MountDetails::Tmpfs { size: *size },
            MountKind::Secret { id, env, required, mode, uid, gid } => MountDetails::Secret {
                id: stage.variables.expand(id)?,
                env: env.clone(),
                required: *required,
                mode: mode.unwrap_or(0o400),
                owner: (uid.unwrap_or(0), gid.unwrap_or(0)),
            },
            MountKind::Ssh { id, required, mode, uid, gid } => MountDetails::Ssh {
                id: expand(id)?.unwrap_or_else(|| DEFAULT_AGENT.to_owned()),
                required: *required,
                mode: mode.unwrap_or(0o600),
                owner: (uid.unwrap_or(0), gid.unwrap_or(0)),
            },
        };
        Ok(Self { span: written.span.clone(), target, read_only: written.read_only, details: what })
    }

    fn create(
        &self,
        stage: &Stage<'_>,
        step: &StepDirectory,
        number: usize,
        made: &mut ReadyMounts,
    ) -> StepOutcome<()> {
        let bound = |target: &str, what| CommandMount {
            target: target.to_owned(),
            source: what,
            read_only: self.read_only,
        };
        let target = self.target.as_deref();
        match &self.details {
            MountDetails::Tmpfs { size } => {
                made.mounts.extend(target.map(|target| bound(target, MountSource::Memory(*size))));
            }
            MountDetails::Bind { files } => {
                let path = files.copy(stage, &step.path().join(format!("bind-{number}")))?;
                made.mounts.extend(target.map(|target| bound(target, MountSource::Path(path))));
            }
            MountDetails::Cache { id, sharing, seed, mode, owner } => {
                let (path, lock) = lock_cache(stage, id, *sharing)?;
                if !path.exists() {
                    create_cache(stage, step, number, &path, seed.as_ref(), mode.unwrap_or(0o755), *owner)?;
                }
                if *sharing == Sharing::Shared {
                    let _ = flock(&lock, FlockOperation::LockShared);
                }
                made.locks.push(lock);
                let path = path.join("upper/it");
                made.mounts.extend(target.map(|target| bound(target, MountSource::Path(path))));
            }
            MountDetails::Secret { id, env, required, mode, owner } => {
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
                    made.mounts.push(CommandMount {
                        target: target.to_owned(),
                        source: MountSource::Path(path),
                        read_only: true,
                    });
                }
            }
            MountDetails::Ssh { id, required, mode, owner } => {
                let Some(agent) = stage.builder.request.access.agents.get(id) else {
                    if *required {
                        let refusal =
                            Refusal::new(self.span.clone(), format!("the SSH agent `{id}` is missing"));
                        return Err(refusal.help(format!("pass it with `--ssh {id}`")).into());
                    }
                    return Ok(());
                };
                let socket =
                    AgentSocket::listen(step.path(), &format!("agent-{number}"), agent, *mode, *owner)?;
                let target = match target {
                    Some(target) => target.to_owned(),
                    None => format!("/run/buildkit/ssh_agent.{}", made.agents.len()),
                };
                // As with BuildKit, the first one is the agent of programs that look for one.
                if made.agents.is_empty() {
                    made.variables.push(format!("SSH_AUTH_SOCK={target}"));
                }
                made.mounts.push(bound(&target, MountSource::Path(socket.path().to_owned())));
                made.agents.push(socket);
            }
        }
        Ok(())
    }
}

impl MountFiles {
    fn of(
        stage: &Stage<'_>,
        from: Option<&jobc_dockerfile::ImageOrStage>,
        source: String,
    ) -> StepOutcome<Self> {
        if let Some(from) = from {
            let taking = base::file_origin(stage.builder, from)?;
            if taking.directory.is_some() {
                let error = "a build context that is a directory cannot be mounted in `RUN`";
                return Err(Error::new(ErrorKind::Unsupported, error)
                    .help("copy it with `COPY --from`, or name an image or an OCI layout")
                    .into());
            }
            return Ok(Self { source, key: taking.key.clone(), from: Origin::Other(taking) });
        }
        let mut key = Key::of("bind");
        let sources = [CopySource::Path(source.clone())];
        let listing = stage.builder.add_sources_to_key(
            &mut key,
            &context_origin(stage)?,
            &sources,
            &Ignore::default(),
            false,
        )?;
        Ok(Self { source, key: key.finish(), from: Origin::Context { listing } })
    }

    /// Copies the files into a new directory; returns the path to mount: the directory, or the file in it.
    fn copy(&self, stage: &Stage<'_>, directory: &std::path::Path) -> StepOutcome<PathBuf> {
        let upper = directory.join("upper");
        for directory in [directory, &upper, &directory.join("work")] {
            fs::create_dir(directory).map_err(|error| stage.builder.store.write_error("write to", &error))?;
        }
        let (from, listing, owner) = match &self.from {
            Origin::Context { listing } => (context_origin(stage)?, Some(listing.clone()), Some((0, 0))),
            Origin::Other(taking) => {
                (CopyOrigin::Layers(stage.builder.directories(&taking.layers)?), None, None)
            }
        };
        stage.copy_files(&CopyRequest {
            step: directory.to_owned(),
            from,
            sources: vec![CopySource::Path(self.source.clone())],
            target: "/it".to_owned(),
            owner,
            listing,
            ..CopyRequest::default()
        })?;
        Ok(upper.join("it"))
    }
}

fn context_origin(stage: &Stage<'_>) -> StepOutcome<CopyOrigin> {
    Ok(CopyOrigin::Context {
        directory: stage.builder.context()?,
        ignore: stage.builder.request.ignore.clone(),
    })
}

/// The directory of a cache, which may not exist yet, and its exclusive lock.
fn lock_cache(stage: &Stage<'_>, id: &str, sharing: Sharing) -> StepOutcome<(PathBuf, File)> {
    let all = stage.builder.store.root().join("cache/mounts");
    let full = |error: std::io::Error| stage.builder.store.write_error("write to", &error);
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
                Err(errno) => return Err(Error::system("lock a cache", errno).into()),
            }
            if stage.builder.is_canceled() {
                return Err(canceled().into());
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
    unreachable!("a cache has no 2^32 users")
}

/// Creates the directory of a cache, with its initial content.
fn create_cache(
    stage: &Stage<'_>,
    step: &StepDirectory,
    number: usize,
    path: &std::path::Path,
    seed: Option<&MountFiles>,
    mode: u32,
    owner: (u32, u32),
) -> StepOutcome<()> {
    let full = |error: std::io::Error| stage.builder.store.write_error("write to", &error);
    let directory = step.path().join(format!("cache-{number}"));
    if let Some(seed) = seed {
        seed.copy(stage, &directory)?;
    } else {
        for directory in [&directory, &directory.join("upper"), &directory.join("work")] {
            fs::create_dir(directory).map_err(full)?;
        }
        stage.copy_files(&CopyRequest {
            step: directory.clone(),
            target: "/it".to_owned(),
            owner: Some(owner),
            mode: Some(Permissions::Bits(mode)),
            ..CopyRequest::default()
        })?;
    }
    // The whole directory, which is this user's own: another id's could not be moved.
    fs::rename(&directory, path).map_err(full)?;
    Ok(())
}
