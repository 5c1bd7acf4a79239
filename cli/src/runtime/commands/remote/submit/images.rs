//! The images that a job builds: built here, pushed to the registry of the target, and named by digest in the plan.
//!
//! Only missing blobs are sent. An image is pushed under a tag made from its own digest, which never moves, so that a
//! registry that removes images without a tag keeps those of running jobs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use camino::Utf8Path;
use jobc_compiler::compile::{self, Artifact, Planning, Request};
use jobc_compiler::diagnostic::{Severity, Sink, codes};
use jobc_compiler::source::Sources;
use jobc_image::{Descriptor, Digest, Platform, Reference, Store};
use jobc_registry::Client;
use jobc_remote::built::BuiltDirectory;
use jobc_remote::place::Problem;
use jobc_schema::BackendName;
use jobc_schema::plan::{ImagePlan, JobPlan};
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::signals::Signals;

use crate::args::FormatArg;
use crate::runtime::args::run::PullPolicy;
use crate::runtime::commands::image;
use crate::runtime::commands::job_image::ImageBuilder;
use crate::runtime::interruptible;
use crate::runtime::progress::Meter;
use crate::runtime::registries;
use crate::runtime::signatures;
use crate::terminal;

/// Digits of the digest in a tag.
pub(super) const TAG_LENGTH: usize = 12;

/// An image to build, once for all jobs of a matrix.
pub(super) struct ImageRequest {
    job: JobPlan,
    image: ImagePlan,
    /// What the Dockerfile backend wrote for the job, with its source map.
    files: Vec<Artifact>,
}

/// The digests of images by the references that the plans have for them.
pub(super) type Pins = BTreeMap<String, Digest>;

/// The images that the jobs build, each with a job that has it.
fn built_images(jobs: &[JobPlan]) -> BTreeMap<&str, (&JobPlan, &ImagePlan)> {
    let of = |job: &'_ JobPlan| job.images.values().filter(|image| image.source.is_built()).count() > 0;
    let with_images = jobs.iter().filter(|job| of(job));
    let each = with_images.flat_map(|job| job.images.values().map(move |image| (job, image)));
    each.filter(|(_, image)| image.source.is_built())
        .map(|(job, image)| (image.reference.as_str(), (job, image)))
        .collect()
}

/// What is built before the jobs can be submitted, with the Dockerfiles generated for it. Errors go to the sink.
pub(super) fn requests(
    sources: &Sources,
    planned: &Planning,
    request: &mut Request<'_>,
    sink: &mut Sink,
) -> Vec<ImageRequest> {
    let mut requests: Vec<ImageRequest> = built_images(&planned.jobs)
        .into_values()
        .map(|(job, image)| ImageRequest { job: job.clone(), image: image.clone(), files: vec![] })
        .collect();
    if requests.is_empty() {
        return requests;
    }
    let with_dockerfile = |request: &ImageRequest| {
        let mut job = request.job.clone();
        job.target.settings.backends = vec![BackendName::Dockerfile];
        job
    };
    let mut with_dockerfiles = planned.clone();
    with_dockerfiles.jobs = requests.iter().map(with_dockerfile).collect();
    let backends = std::mem::replace(&mut request.only_backends, vec![BackendName::Dockerfile]);
    let outputs = compile::build(sources, with_dockerfiles, request, sink);
    request.only_backends = backends;
    for request in &mut requests {
        let output = outputs.iter().find(|output| output.job.name == request.job.name);
        request.files.extend(output.iter().flat_map(|output| output.artifacts.clone()));
    }
    requests
}

/// Names the images of the jobs by digest.
pub(super) fn pin(jobs: &mut [JobPlan], pins: &Pins) {
    for image in jobs.iter_mut().flat_map(|job| job.images.values_mut()) {
        if let Some(digest) = pins.get(&image.reference).filter(|_| image.source.is_built()) {
            image.reference = format!("{}@{digest}", repository(&image.reference));
        }
    }
}

/// A reference without its tag.
pub(super) fn repository(reference: &str) -> &str {
    reference.rsplit_once(':').map_or(reference, |(name, _)| name)
}

/// The name of a built image in the registry of the job's target; none without a registry.
fn name_in_registry(job: &JobPlan, reference: &str) -> Option<String> {
    let registry = job.target.settings.registry.as_ref()?;
    Some(format!("{}/{reference}", registry.trim_end_matches('/')))
}

/// Builds images and pushes them. An error comes with the image that it is about.
///
/// A terminating signal ends a build and a push within a second: the registry discards incomplete uploads.
pub(super) fn provide(
    requests: &[ImageRequest],
    sources: &Sources,
    directory: &Path,
    image_root: Option<&Path>,
) -> Result<std::result::Result<Pins, (String, Error)>> {
    each(requests, image_root, &|request, store, stopped| request.provide(store, sources, directory, stopped))
}

/// Builds images, and returns their descriptors by the references that the plans have for them.
pub(super) fn build(
    requests: &[ImageRequest],
    sources: &Sources,
    directory: &Path,
    image_root: Option<&Path>,
) -> Result<std::result::Result<BTreeMap<String, Descriptor>, (String, Error)>> {
    each(requests, image_root, &|request, store, stopped| {
        // Stdout is for the handles.
        let meter = Meter::new(FormatArg::Text, false);
        let built = request.build(store, sources, directory, &meter, stopped);
        meter.clear();
        built
    })
}

/// Work on an image: the store, and whether to stop.
type Work<'a, T> = &'a (dyn Fn(&ImageRequest, &Store, &AtomicBool) -> Result<T> + Sync);

/// Does something with each image.
fn each<T: Send>(
    requests: &[ImageRequest],
    image_root: Option<&Path>,
    work_on: Work<'_, T>,
) -> Result<std::result::Result<BTreeMap<String, T>, (String, Error)>> {
    let signals = Signals::block_forwarded()?;
    let stopped = AtomicBool::new(false);
    let work = || -> std::result::Result<BTreeMap<String, T>, (String, Error)> {
        let mut pins = BTreeMap::new();
        let store = match requests.first() {
            Some(first) => image::open(image_root).map_err(|error| (first.image.reference.clone(), error))?,
            None => return Ok(pins),
        };
        for request in requests {
            let failed = |error: Error| (request.image.reference.clone(), error);
            let done = work_on(request, &store, &stopped).map_err(failed)?;
            pins.insert(request.image.reference.clone(), done);
        }
        Ok(pins)
    };
    // A push does not stop by itself, so it ends a moment later, with this program.
    interruptible::run_or_exit(&signals, &stopped, work)
}

impl ImageRequest {
    fn build(
        &self,
        store: &Store,
        sources: &Sources,
        directory: &Path,
        meter: &Meter,
        stopped: &AtomicBool,
    ) -> Result<Descriptor> {
        let builder = ImageBuilder {
            store,
            sources,
            directory,
            pull: PullPolicy::Missing,
            progress: &|progress| meter.report(&progress),
            clear_progress: &|| meter.clear(),
            stopped,
        };
        builder.build(&self.job, &self.files, &self.image)
    }

    fn provide(
        &self,
        store: &Store,
        sources: &Sources,
        directory: &Path,
        stopped: &AtomicBool,
    ) -> Result<Digest> {
        // Stdout is for the handles.
        let meter = Meter::new(FormatArg::Text, false);
        let on_progress = |progress| meter.report(&progress);
        let built = self.build(store, sources, directory, &meter, stopped)?;
        let name = name_in_registry(&self.job, repository(&self.image.reference));
        let name = name.ok_or_else(|| Error::new(Kind::Config, "the target has no registry"))?;
        let client: Client = registries::client(false)?;
        let tag = &built.digest.hex()[..TAG_LENGTH];
        let destination: Reference = format!("{name}:{tag}").parse()?;
        let cannot_push = |error: Error| error.under("cannot push it");
        let digest = if client.is_pushed(&destination, &built.digest).map_err(cannot_push)? {
            built.digest
        } else {
            let pushed = client.push(store, &built, &Platform::here(), &destination, &on_progress);
            let digest = pushed.map_err(cannot_push)?.digest;
            meter.clear();
            terminal::eprint(&format!("jobc: pushed {}\n", destination.at(&digest).familiar()));
            digest
        };
        Ok(digest)
    }
}

/// The digests of images that were pushed by hand. If the registry cannot be queried, the tag is kept, with a warning.
///
/// They must be signed if the policy of the target requires it: they were not built here.
pub(super) fn look_up(jobs: &[JobPlan], targets: Option<&Utf8Path>) -> (Pins, Vec<(String, Problem)>) {
    let (mut pins, mut problems) = (Pins::new(), Vec::new());
    for (reference, (job, _)) in built_images(jobs) {
        let Some(name) = name_in_registry(job, reference) else { continue };
        let mut push = |is_warning: bool, message: String, help: Option<String>| {
            problems.push((reference.to_owned(), Problem { help, ..Problem::new(is_warning, message) }));
        };
        match resolve(&name) {
            Ok(Some(digest)) => {
                let signed = signatures::why_unsigned(job, &format!("{name}@{digest}"), targets);
                if let Some(why) = signed.unwrap_or_else(|error| Some(error.message())) {
                    push(false, why, None);
                }
                pins.insert(reference.to_owned(), digest);
            }
            Ok(None) => push(
                false,
                format!("the image `{name}`, which the job builds, is not in the registry"),
                Some(format!(
                    "leave out `--no-build`, or build it with `jobc image build -t {name}`, then `jobc image push {name}`"
                )),
            ),
            Err(why) => {
                push(
                    true,
                    format!("cannot check whether the image `{name}` is in the registry: {why}"),
                    None,
                );
            }
        }
    }
    (pins, problems)
}

/// The digest of a name in its registry; none if it is not there.
fn resolve(name: &str) -> std::result::Result<Option<Digest>, String> {
    let reference: Reference = name.parse().map_err(|error| format!("{error}"))?;
    let client: Client = registries::client(false).map_err(|error| error.message())?;
    match client.resolve(&reference) {
        Ok(found) => Ok(Some(found.digest)),
        Err(error) if error.kind == Kind::State => Ok(None),
        Err(error) => Err(error.message()),
    }
}

/// Findings in which an image that is built here and that no node can pull is an error.
pub(super) fn require_registry(sink: Sink) -> Sink {
    let mut required = Sink::new();
    for mut finding in sink.into_diagnostics() {
        if finding.code == codes::KUBERNETES_REGISTRY {
            finding.severity = Severity::Error;
        }
        required.push(finding);
    }
    required
}

/// The line of the job that an image comes from.
pub(super) fn place_of(built: &BuiltDirectory, reference: &str) -> Option<String> {
    let name = name_in_registry(&built.plan, reference);
    built.origin_of_image(name.as_deref().unwrap_or(reference))
}

/// Says which images a dry run leaves out.
pub(super) fn announce(jobs: &[JobPlan]) {
    for reference in built_images(jobs).keys() {
        terminal::eprint(&format!("jobc: the image `{reference}` would be built and sent\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_left_out_of_a_name_by_digest() {
        assert_eq!(repository("sweep-main:093f1974ad9d"), "sweep-main");
        assert_eq!(repository("sweep"), "sweep");
    }
}
