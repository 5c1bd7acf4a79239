//! `COPY` and `ADD`.

use super::{Stage, StepOutcome, base};
use crate::build::files::{CopyOrigin, CopyRequest, CopySource};
use jobc_container::root::layers::Layers;
use jobc_container::user;
use jobc_dockerfile::ignore::Ignore;
use jobc_dockerfile::{Copy as Written, Refusal, Remote, Source, Word};
use jobc_sys::error::Error;

impl Stage<'_> {
    /// Carries it out; `add` unpacks archives.
    pub(super) fn copy(&mut self, copy: &Written, add: bool, text: &str) -> StepOutcome<()> {
        let target = self.target(&copy.target)?;
        let mut sources = Vec::new();
        let (mut repositories, mut remote_keys) = (Vec::new(), Vec::new());
        for source in &copy.sources {
            sources.push(match source {
                Source::Path(word) => {
                    let text = self.variables.expand(word)?;
                    match Remote::parse(&text).filter(|_| add) {
                        None => CopySource::Path(text),
                        Some(remote) => {
                            let fetched = self.fetch_remote(copy, word, remote)?;
                            repositories.extend(fetched.repository);
                            remote_keys.extend(fetched.key);
                            let Some(source) = fetched.source else { continue };
                            source
                        }
                    }
                }
                Source::Heredoc(heredoc) => {
                    let name = heredoc.name.clone();
                    CopySource::Text { name, content: self.variables.expand_heredoc(heredoc)? }
                }
            });
        }
        let mode = copy.chmod.as_ref().map(|word| self.variables.mode(word)).transpose()?;
        let chown = copy.chown.as_ref().map(|word| Ok::<_, Refusal>((self.variables.expand(word)?, word)));
        let chown = chown.transpose()?;
        let exclude = copy.exclude.iter().map(|word| self.variables.expand(word));
        let exclude: Vec<String> = exclude.collect::<Result<_, _>>()?;
        let patterns = Ignore::of(exclude.iter().map(String::as_str))
            .map_err(|why| Refusal::new(copy.exclude.first().map_or(0..0, |word| word.span.clone()), why))?;
        let unpack = add && copy.unpack.unwrap_or(true);
        let unpack_downloads = add && copy.unpack.unwrap_or(false);

        let mut key =
            self.key("copy").with(&target).with(format!("{mode:?} {unpack} {} {}", copy.parents, copy.link));
        key.add_all(&exclude);
        key.add(chown.as_ref().map_or("", |(chown, _)| chown.as_str()));
        for source in &sources {
            match source {
                // The path of a file in the context matters only for `--parents`.
                CopySource::Path(_) if copy.from.is_none() && !copy.parents => {}
                CopySource::Path(path) => key.add(path),
                CopySource::Text { name, content } => {
                    key.add(name);
                    key.add(content);
                }
                // Where it is does not matter.
                CopySource::Download { .. } | CopySource::Directory(_) => {}
            }
        }
        if !remote_keys.is_empty() {
            key.add(format!("remote {unpack_downloads}"));
            key.add_all(&remote_keys);
        }
        let mut order = CopyRequest {
            sources,
            target,
            mode,
            parents: copy.parents,
            unpack,
            unpack_downloads,
            exclude: patterns,
            // The owner of the context owns its files.
            owner: if copy.from.is_none() { Some((0, 0)) } else { None },
            ..CopyRequest::default()
        };
        let taking = match &copy.from {
            None if order.sources.iter().all(|source| !matches!(source, CopySource::Path(_))) => None,
            None => {
                order.from = CopyOrigin::Context {
                    directory: self.builder.context()?,
                    ignore: self.builder.request.ignore.clone(),
                };
                order.listing = Some(self.builder.add_sources_to_key(
                    &mut key,
                    &order.from,
                    &order.sources,
                    &order.exclude,
                    order.parents,
                )?);
                None
            }
            Some(from) => {
                let taking = base::file_origin(self.builder, from)?;
                key.add(taking.key.hex());
                if let Some((directory, ignore)) = taking.directory {
                    order.owner = Some((0, 0));
                    order.from = CopyOrigin::Context { directory, ignore };
                    order.listing = Some(self.builder.add_sources_to_key(
                        &mut key,
                        &order.from,
                        &order.sources,
                        &order.exclude,
                        order.parents,
                    )?);
                    None
                } else {
                    Some(taking)
                }
            }
        };
        self.layer(key.finish(), text, |stage, step, lowers| {
            if let Some((chown, word)) = &chown {
                order.owner = Some(owner(chown, word, &lowers)?);
                order.owned = true;
            }
            if let Some(taking) = taking {
                order.from = CopyOrigin::Layers(stage.builder.directories(&taking.layers)?);
            }
            // With `--link` a layer is the same on any base.
            order.lowers = if copy.link { Vec::new() } else { lowers };
            step.path().clone_into(&mut order.step);
            for (number, repository) in repositories.iter().enumerate() {
                order.sources.push(repository.check_out(stage, step, number)?);
            }
            stage.copy_files(&order)
        })
    }

    /// The target: an absolute path, with a trailing slash if it is written as a directory.
    fn target(&self, word: &Word) -> StepOutcome<String> {
        let text = self.variables.expand(word)?;
        if text.is_empty() {
            return Err(Refusal::new(word.span.clone(), "the target is empty").into());
        }
        let directory =
            text.ends_with('/') || text.rsplit('/').next().is_some_and(|last| matches!(last, "." | ".."));
        let path = self.result.settings.absolute(&text);
        Ok(if directory && !path.ends_with('/') { format!("{path}/") } else { path })
    }
}

/// The user of `--chown` or `USER`, by the image's own /etc/passwd and /etc/group. A number without a group is used for both, as
/// with BuildKit.
pub(super) fn owner(chown: &str, word: &Word, lowers: &[std::path::PathBuf]) -> StepOutcome<(u32, u32)> {
    let numbers = chown.parse::<u32>().map(|id| (id, id)).ok().or_else(|| {
        let (uid, gid) = chown.split_once(':')?;
        Some((uid.parse().ok()?, gid.parse().ok()?))
    });
    if let Some(numbers) = numbers {
        return Ok(numbers);
    }
    let layers = Layers::open(lowers).map_err(|errno| Error::system("open the layers", errno))?;
    let account = user::lookup(&layers, chown).map_err(|error| {
        let refusal = Refusal::new(word.span.clone(), error.message().replace("the container", "the image"));
        refusal.help(error.advice().unwrap_or_default())
    })?;
    Ok((account.uid, account.gid))
}
