//! Images that a job builds: from the Dockerfile generated from its image block, or from the user's own.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use camino::{Utf8Path, Utf8PathBuf};
use indexmap::IndexMap;
use jobc_compiler::compile::Artifact;
use jobc_compiler::source::Sources;
use jobc_compiler::why::source_map::{FILE, SourceMap};
use jobc_container::secret::Secret;
use jobc_image::build::{self, BuildError, Request, dockerignore};
use jobc_image::dockerfile::ignore::Ignore;
use jobc_image::dockerfile::{self, Build, MountKind, Refusal, Refusals, Rule};
use jobc_image::{Descriptor, Digest, Platform, ProgressFn, Store};
use jobc_job::secrets;
use jobc_schema::plan::{ImagePlan, ImageSource, JobPlan};
use jobc_sys::error::{Error, Kind, Result};

use crate::args::FormatArg;
use crate::input::reason;
use crate::runtime::args::run::PullPolicy;
use crate::runtime::commands::image::build::failure;
use crate::runtime::commands::image::build::host::BuildHost;
use crate::runtime::commands::image::dockerfile_errors;

/// Builds images of jobs into a store.
pub(crate) struct ImageBuilder<'a> {
    pub(crate) store: &'a Store,
    /// The texts of the job, for errors at its lines.
    pub(crate) sources: &'a Sources,
    /// The base directory of relative paths in the job file.
    pub(crate) directory: &'a Path,
    pub(crate) pull: PullPolicy,
    pub(crate) progress: ProgressFn<'a>,
    /// Removes bars of progress, so that something else can be printed.
    pub(crate) clear_progress: &'a (dyn Fn() + Sync),
    /// Set to true to cancel a build.
    pub(crate) stopped: &'a AtomicBool,
}

/// The input of a build.
struct BuildInput {
    /// The Dockerfile's name in findings.
    display_name: Utf8PathBuf,
    text: Vec<u8>,
    /// The name and the text of the ignore file.
    ignore_file: Option<(Utf8PathBuf, Vec<u8>)>,
    context: PathBuf,
    target: Option<String>,
    args: Vec<(String, String)>,
}

impl ImageBuilder<'_> {
    /// Builds an image of a job, of which `files` has the generated Dockerfile. Errors of a Dockerfile are shown at its lines.
    pub(crate) fn build(&self, plan: &JobPlan, files: &[Artifact], image: &ImagePlan) -> Result<Descriptor> {
        let recipe = self.input(plan, files, image)?;
        let platform = match &image.source {
            ImageSource::Build { platform: Some(platform), .. } => platform.parse()?,
            _ => Platform::here(),
        };
        let host = BuildHost::read(false, &[])?;
        let args = host.arguments(recipe.args.clone());
        let inspection = BuildHost::inspect(&recipe.text, &args, recipe.target.as_deref(), &platform);
        let build = inspection.build.ok_or_else(|| {
            report_refusals(image, &recipe.display_name, &recipe.text, &inspection.refusals)
        })?;
        let ignore = match &recipe.ignore_file {
            None => Ignore::default(),
            Some((shown, bytes)) => {
                // The places are those of this text: bytes that are not UTF-8 are longer in it.
                let text = String::from_utf8_lossy(bytes);
                Ignore::read(&text)
                    .map_err(|Refusals(refusals)| report_refusals(image, shown, text.as_bytes(), &refusals))?
            }
        };
        let request = Request {
            ignore,
            labels: labels(image),
            tags: vec![image.reference.parse()?],
            secrets: self.secrets(plan, image, &build)?,
            locked: locked_digests(image)?,
            pull: self.pull == PullPolicy::Always,
            fetch: (self.pull != PullPolicy::Never).then(|| host.fetch()),
            ..host.request(&build, &recipe.context, platform)
        };
        build::build(self.store, &request, self.progress, self.stopped).map_err(|error| match error {
            BuildError::Refused(refusals) => {
                report_refusals(image, &recipe.display_name, &recipe.text, &refusals)
            }
            BuildError::Failed(failure) => self.report_failure(files, image, &recipe, *failure),
        })
    }

    /// The secrets that a build may read: those that the image block names, or those of the job that the user's own
    /// Dockerfile mounts.
    fn secrets(&self, plan: &JobPlan, image: &ImagePlan, build: &Build) -> Result<IndexMap<String, Secret>> {
        let names: BTreeSet<String> = if let ImageSource::Build { secrets, .. } = &image.source {
            secrets.iter().cloned().collect()
        } else {
            let instructions = build.stages.iter().flat_map(|stage| &stage.instructions);
            let mounts = instructions.filter_map(|instruction| match &instruction.kind {
                dockerfile::Kind::Run(run) => Some(&run.mounts),
                _ => None,
            });
            let ids = mounts.flatten().filter_map(|mount| match &mount.kind {
                MountKind::Secret { id, .. } => Some(id.text.clone()),
                _ => None,
            });
            ids.collect()
        };
        // Another id is that of a secret that only other builds have.
        let known = names.iter().filter_map(|name| Some((name, plan.secrets.get(name)?)));
        known.map(|(name, source)| Ok((name.clone(), secrets::read(name, source, self.directory)?))).collect()
    }

    /// Shows the failure of an instruction at the field of the job file that causes it. One of the user's own Dockerfile
    /// is returned with its line.
    fn report_failure(
        &self,
        files: &[Artifact],
        image: &ImagePlan,
        recipe: &BuildInput,
        failed: build::Failure,
    ) -> Error {
        let build::Failure { span, error, output } = failed;
        let Some(line) = span.map(|span| line_number(&recipe.text, span.start)) else { return error };
        let instruction = failure::Instruction { path: &recipe.display_name, text: &recipe.text, line };
        let map = files.iter().find(|file| file.path == FILE);
        let map = map.filter(|_| !self.stopped.load(Ordering::Relaxed));
        let map = map.and_then(|map| SourceMap::parse(std::str::from_utf8(&map.bytes).ok()?).ok());
        let finding = map.and_then(|map| instruction.finding(&error, &output, &map, self.sources));
        if let Some(finding) = finding {
            (self.clear_progress)();
            failure::show(self.sources, finding, FormatArg::Text);
            return cannot_build(error.kind, image).help("fix the error above");
        }
        error.under(format_args!("{}:{line}", recipe.display_name))
    }

    fn input(&self, plan: &JobPlan, files: &[Artifact], image: &ImagePlan) -> Result<BuildInput> {
        let directory = self.directory;
        if let ImageSource::Dockerfile { path, context, target, args, .. } = &image.source {
            let file = directory.join(path);
            let context = directory.join(context);
            let text = read(&file)?;
            let ignored = dockerignore::file(Some(&file), &context)
                .map(|path| -> Result<_> {
                    Ok((Utf8PathBuf::from(path.to_string_lossy().into_owned()), read(&path)?))
                })
                .transpose()?;
            let args = args.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
            return Ok(BuildInput {
                display_name: path.into(),
                text,
                ignore_file: ignored,
                context,
                target: target.clone(),
                args,
            });
        }
        let name = plan.images.iter().find(|(_, other)| other.reference == image.reference);
        let place = Utf8Path::new("dockerfile").join(name.map_or("", |(name, _)| name));
        let file = |name: &str| files.iter().find(|file: &&Artifact| file.path == place.join(name));
        let dockerfile = file("Dockerfile").ok_or_else(|| {
            Error::new(
                Kind::Config,
                format!("the plan has no Dockerfile for the image `{}`", image.reference),
            )
            .help("build the plan with the dockerfile backend, or run the job file itself")
        })?;
        Ok(BuildInput {
            display_name: dockerfile.path.clone(),
            text: dockerfile.bytes.clone(),
            ignore_file: file("Dockerfile.dockerignore").map(|file| (file.path.clone(), file.bytes.clone())),
            context: directory.to_owned(),
            target: None,
            args: Vec::new(),
        })
    }
}

/// The label with the digest of the plan of an image. Versions and commits are left out: the image would have another
/// digest after each of them, and with it the job another identity.
fn labels(image: &ImagePlan) -> IndexMap<String, String> {
    let digest = image.reference.rsplit_once(':').map(|(_, digest)| digest.to_owned());
    digest.into_iter().map(|digest| ("dev.jobc.image-plan".to_owned(), digest)).collect()
}

/// The digests of base images in jobc.lock. A generated Dockerfile already contains them.
fn locked_digests(image: &ImagePlan) -> Result<IndexMap<String, Digest>> {
    let ImageSource::Dockerfile { locked, .. } = &image.source else { return Ok(IndexMap::new()) };
    locked.iter().map(|(name, digest)| Ok((name.clone(), digest.parse()?))).collect()
}

fn read(path: &std::path::Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| {
        Error::new(Kind::Config, format!("cannot read `{}`: {}", path.display(), reason(&error)))
    })
}

fn line_number(text: &[u8], offset: usize) -> usize {
    text[..offset.min(text.len())].iter().filter(|byte| **byte == b'\n').count() + 1
}

fn cannot_build(kind: Kind, image: &ImagePlan) -> Error {
    Error::new(kind, format!("the image `{}` cannot be built", image.reference))
}

/// Shows the errors of a Dockerfile; the returned error refers to them.
fn report_refusals(image: &ImagePlan, shown: &Utf8Path, text: &[u8], refusals: &[Refusal]) -> Error {
    dockerfile_errors::show(shown, text, refusals, &[], FormatArg::Text);
    let error = cannot_build(Kind::Config, image);
    if refusals.iter().all(|refusal| refusal.rule == Rule::Unsupported) {
        return error.help(
            "try another builder: `jobc image build --builder docker`, and name that image in the job",
        );
    }
    error.help("fix the errors above")
}
