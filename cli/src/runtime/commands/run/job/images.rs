//! The images of a job, pulled, built and unpacked before its start by the command in the foreground. The supervisor
//! finds them in the store and never contacts a registry.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use indexmap::IndexMap;
use jobc_container::root::top_directory::TopDirectory;
use jobc_image::progress::ignore_progress;
use jobc_image::{Descriptor, Platform, ProgressFn, Store, source, unpack};
use jobc_job::submission;
use jobc_schema::plan::{ImagePlan, ImageSource, JobPlan, RolePlan};
use jobc_sys::error::{Error, Result};
use jobc_sys::id::EVERY_ROLE;
use jobc_sys::signals::Signals;

use super::built_plan::{BuiltJob, BuiltPlan};
use super::options;
use crate::args::FormatArg;
use crate::runtime::args::run::RunArgs;
use crate::runtime::commands::doctor::try_overlay;
use crate::runtime::commands::image;
use crate::runtime::commands::job_image::ImageBuilder;
use crate::runtime::commands::run::pull::find_or_pull;
use crate::runtime::interruptible;
use crate::runtime::progress::Meter;
use crate::terminal;

/// The images of the jobs that are about to start. While this exists, garbage collection is blocked.
pub(super) struct Images {
    store: Option<Store>,
    /// The manifest of each role's image, by job and role.
    manifests: HashMap<String, IndexMap<String, Descriptor>>,
    /// Directories that are used as root file systems unchanged, by job and role.
    roots: HashMap<String, IndexMap<String, String>>,
    /// Why tasks get copies of layers instead of an overlay.
    copied: Option<String>,
}

impl Images {
    /// The images of a job, for its supervisor.
    pub(super) fn for_job(&self, plan: &JobPlan) -> Option<submission::Images> {
        let (store, roles) = (self.store.as_ref()?, self.manifests.get(&plan.name)?);
        Some(submission::Images {
            store: store.root().to_owned(),
            shared: store.shared_roots(),
            copied: self.copied.clone(),
            roles: roles.clone(),
        })
    }

    /// Directories that are used as root file systems unchanged, by role.
    pub(super) fn roots(&self, plan: &JobPlan) -> IndexMap<String, String> {
        self.roots.get(&plan.name).cloned().unwrap_or_default()
    }
}

/// The images and root file systems of roles without `--root`.
#[derive(Default)]
struct ImageRequests<'a> {
    /// Images for the store.
    images: Vec<(&'a BuiltJob, &'a RolePlan, &'a ImagePlan)>,
    /// Directories that are used as root file systems unchanged, by job and role.
    roots: HashMap<String, IndexMap<String, String>>,
}

impl<'a> ImageRequests<'a> {
    fn collect(args: &RunArgs, built: &'a BuiltPlan, jobs: &'a [BuiltJob]) -> Result<Self> {
        let mut wanted = Self::default();
        let mut directories = BTreeSet::new();
        for job in jobs {
            let roots = options::roots(&args.root, &job.plan)?;
            directories.extend(roots.iter().map(|(_, root)| root.clone()));
            for role in &job.plan.roles {
                let has_root = roots.iter().any(|(name, _)| *name == role.name || name == EVERY_ROLE);
                let Some(image) = job.plan.image_of(role) else { continue };
                if has_root || matches!(image.source, ImageSource::Host { .. }) || has_bundled_root(job, role)
                {
                    continue;
                }
                match root_directory(built, image) {
                    Some(directory) => {
                        let roots = wanted.roots.entry(job.plan.name.clone()).or_default();
                        directories.insert(directory.clone());
                        roots.insert(role.name.clone(), directory);
                    }
                    None => wanted.images.push((job, role, image)),
                }
            }
        }
        for root in directories.iter().filter(|root| !args.quiet && *root != "host") {
            if let Some(top) = TopDirectory::of(Path::new(root)) {
                terminal::eprint(&format!("note: {}\n", top.note(root)));
            }
        }
        Ok(wanted)
    }
}

/// Adds the images of all jobs to the store and unpacks them. A signal that ends a program ends this.
pub(super) fn provide(
    args: &RunArgs,
    built: &BuiltPlan,
    signals: &Signals,
    format: FormatArg,
) -> Result<Images> {
    let ImageRequests { images, roots } = ImageRequests::collect(args, built, &built.jobs)?;
    if images.is_empty() {
        return Ok(Images { store: None, manifests: HashMap::new(), roots, copied: None });
    }
    let store = image::open(args.image_root.as_deref())?;
    let stopped = AtomicBool::new(false);
    let meter = Meter::new(FormatArg::Text, args.quiet || format == FormatArg::Json);
    let on_progress = |progress| meter.report(&progress);
    let of = interruptible::run_or_exit(signals, &stopped, || -> Result<_> {
        let known = RefCell::default();
        let provider = Provider {
            args,
            built,
            store: &store,
            progress: &on_progress,
            clear_progress: &|| meter.clear(),
            stopped: &stopped,
            provided: known,
        };
        let mut of: HashMap<String, IndexMap<String, Descriptor>> = HashMap::new();
        for (job, role, image) in images {
            let manifest = provider.provide(job, image).map_err(|error| at_image_field(image, error))?;
            of.entry(job.plan.name.clone()).or_default().insert(role.name.clone(), manifest);
        }
        Ok(of)
    });
    meter.clear();
    let copied = overlay_error(&store);
    Ok(Images { manifests: of??, roots, copied, store: Some(store) })
}

/// The images of a job that are in the store, and the missing steps for the others. Nothing is pulled or built.
pub(super) fn find_local(args: &RunArgs, built: &BuiltPlan, job: &BuiltJob) -> Result<(Images, Vec<String>)> {
    let ImageRequests { images, roots } = ImageRequests::collect(args, built, std::slice::from_ref(job))?;
    let mut missing = Vec::new();
    if images.is_empty() {
        return Ok((Images { store: None, manifests: HashMap::new(), roots, copied: None }, missing));
    }
    let store = image::open(args.image_root.as_deref())?;
    let mut of: HashMap<String, IndexMap<String, Descriptor>> = HashMap::new();
    for (job, role, image) in images {
        let ImageSource::Reference {} = image.source else {
            let verb = if image.source.is_built() { "built" } else { "imported" };
            missing.push(format!("the image `{}` of `{}` is {verb} first", image.reference, role.name));
            continue;
        };
        let found = image.reference.parse().map_err(Error::from).and_then(|reference| store.find(&reference));
        let Some(found) = found.map_err(|error| at_image_field(image, error))? else {
            missing.push(format!("the image `{}` of `{}` is pulled first", image.reference, role.name));
            continue;
        };
        let found = store.image(&found, &Platform::here())?;
        unpack::layers(&store, &found, &ignore_progress, &AtomicBool::new(false))?;
        of.entry(job.plan.name.clone()).or_default().insert(role.name.clone(), found.descriptor);
    }
    Ok((Images { manifests: of, roots, copied: None, store: Some(store) }, missing))
}

/// Why no overlay can be mounted over directories of the store; none if it can.
fn overlay_error(store: &Store) -> Option<String> {
    if std::env::var_os("JOBC_COPY_LAYERS").is_some_and(|value| !value.is_empty() && value != "0") {
        return Some("JOBC_COPY_LAYERS is set".to_owned());
    }
    try_overlay(&store.root().join("unpacked"))
        .err()
        .map(|why| format!("cannot mount an overlay over `{}`: {why}", store.root().display()))
}

/// The same error, at the field of the job file that declares the image.
pub(super) fn at_image_field(image: &ImagePlan, error: Error) -> Error {
    let field = image.declared_at.to_string().trim_start_matches('/').replace('/', ".");
    error.at_field(field)
}

/// A directory that is a root file system, and not an image to unpack.
fn root_directory(built: &BuiltPlan, image: &ImagePlan) -> Option<String> {
    let ImageSource::File { path } = &image.source else { return None };
    let path = built.directory.join(path);
    (path.is_dir() && !path.join("oci-layout").is_file()).then(|| path.to_string_lossy().into_owned())
}

/// Whether a built plan has the role's root file system next to its bundles.
fn has_bundled_root(job: &BuiltJob, role: &RolePlan) -> bool {
    let prefix = format!("oci/{}-0/rootfs", role.name);
    job.files.iter().any(|file| {
        file.path
            .as_str()
            .strip_prefix(&prefix)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '.']))
    })
}

/// Provides images, each once.
struct Provider<'a> {
    args: &'a RunArgs,
    built: &'a BuiltPlan,
    store: &'a Store,
    progress: ProgressFn<'a>,
    clear_progress: &'a (dyn Fn() + Sync),
    stopped: &'a AtomicBool,
    /// Manifests by reference in the plan, and by the sources of the secrets of a build.
    provided: RefCell<HashMap<String, Descriptor>>,
}

impl Provider<'_> {
    /// The manifest of a role's image, whose layers are unpacked.
    fn provide(&self, job: &BuiltJob, image: &ImagePlan) -> Result<Descriptor> {
        // The tag of an image that is built is the digest of its recipe, which the jobs of a sweep may share.
        let key = format!("{}\n{:?}", image.reference, job.plan.secrets);
        let key = if image.source.is_built() { key } else { image.reference.clone() };
        if let Some(known) = self.provided.borrow().get(&key) {
            return Ok(known.clone());
        }
        let found = match &image.source {
            ImageSource::Reference {} => {
                let (name, pull) = (&image.reference, self.args.pull_policy());
                find_or_pull(self.store, name, pull, self.progress, self.stopped)
            }
            ImageSource::File { path } => {
                source::import_one(self.store, &self.built.directory.join(path), self.progress, self.stopped)
            }
            _ => {
                let builder = ImageBuilder {
                    store: self.store,
                    sources: &self.built.sources,
                    directory: &self.built.directory,
                    pull: self.args.pull_policy(),
                    progress: self.progress,
                    clear_progress: self.clear_progress,
                    stopped: self.stopped,
                };
                builder.build(&job.plan, &job.files, image)
            }
        };
        let image = self.store.image(&found?, &Platform::here())?;
        unpack::layers(self.store, &image, self.progress, self.stopped)?;
        self.provided.borrow_mut().insert(key, image.descriptor.clone());
        Ok(image.descriptor)
    }
}
