//! The images of a job, before it begins: fetched, built and unpacked by the command that a person watches, so that its
//! supervisor, which never speaks with a registry, finds them in the store.

mod built;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use indexmap::IndexMap;
use jobc_image::progress::untold;
use jobc_image::{Descriptor, Fetch, Platform, Reference, Store, Told, source, unpack};
use jobc_job::submission;
use jobc_schema::plan::{ImagePlan, ImageSource, JobPlan, RolePlan};
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::id::EVERY_ROLE;
use jobc_sys::signals::Signals;

use super::built::{Built, BuiltJob};
use super::options;
use crate::args::FormatArg;
use crate::args::run::{Pull, RunArgs};
use crate::commands::doctor::overlay_over;
use crate::commands::image;
use crate::interruptible::{self, end_by};
use crate::progress::Meter;
use crate::registries;

/// The images of the jobs that are about to begin. While this is there, nothing is collected.
pub(super) struct Images {
    store: Option<Store>,
    /// The manifest of each role's image, by job and role.
    of: HashMap<String, IndexMap<String, Descriptor>>,
    /// Folders that are the images of roles as they are, by job and role.
    roots: HashMap<String, IndexMap<String, String>>,
    /// Why tasks get copies of layers in place of an overlay.
    copied: Option<String>,
}

impl Images {
    /// The images of a job, for its supervisor.
    pub(super) fn of(&self, plan: &JobPlan) -> Option<submission::Images> {
        let (store, roles) = (self.store.as_ref()?, self.of.get(&plan.name)?);
        Some(submission::Images {
            store: store.root().to_owned(),
            copied: self.copied.clone(),
            roles: roles.clone(),
        })
    }

    /// Folders that are roots as they are, by role.
    pub(super) fn roots(&self, plan: &JobPlan) -> IndexMap<String, String> {
        self.roots.get(&plan.name).cloned().unwrap_or_default()
    }
}

/// What the roles of jobs begin with, where no `--root` says it.
#[derive(Default)]
struct Wanted<'a> {
    /// Images that belong into the store.
    images: Vec<(&'a BuiltJob, &'a RolePlan, &'a ImagePlan)>,
    /// Folders that are roots as they are, by job and role.
    roots: HashMap<String, IndexMap<String, String>>,
}

impl<'a> Wanted<'a> {
    fn by(args: &RunArgs, built: &'a Built, jobs: &'a [BuiltJob]) -> Result<Self> {
        let mut wanted = Self::default();
        for job in jobs {
            let roots = options::roots(&args.root, &job.plan)?;
            for role in &job.plan.roles {
                let has_root = roots.iter().any(|(name, _)| *name == role.name || name == EVERY_ROLE);
                let Some(image) = job.plan.image_of(role) else { continue };
                if has_root || matches!(image.source, ImageSource::Host {}) || brings_its_own(job, role) {
                    continue;
                }
                match as_it_is(built, image) {
                    Some(folder) => {
                        let roots = wanted.roots.entry(job.plan.name.clone()).or_default();
                        roots.insert(role.name.clone(), folder);
                    }
                    None => wanted.images.push((job, role, image)),
                }
            }
        }
        Ok(wanted)
    }
}

/// Brings the images of all jobs into the store and unpacks them. A signal that ends a program ends this.
pub(super) fn provide(args: &RunArgs, built: &Built, signals: &Signals, format: FormatArg) -> Result<Images> {
    let Wanted { images, roots } = Wanted::by(args, built, &built.jobs)?;
    if images.is_empty() {
        return Ok(Images { store: None, of: HashMap::new(), roots, copied: None });
    }
    let store = image::open(args.image_root.as_deref())?;
    let stopped = AtomicBool::new(false);
    let meter = Meter::new(FormatArg::Text, args.quiet || format == FormatArg::Json);
    let told = |progress| meter.tell(&progress);
    let of = interruptible(signals, &stopped, || -> Result<_> {
        let known = RefCell::default();
        let provider = Provider { args, built, store: &store, told: &told, stopped: &stopped, known };
        let mut of: HashMap<String, IndexMap<String, Descriptor>> = HashMap::new();
        for (job, role, image) in images {
            let manifest = provider.provide(job, image).map_err(|error| at(image, error))?;
            of.entry(job.plan.name.clone()).or_default().insert(role.name.clone(), manifest);
        }
        Ok(of)
    });
    meter.clear();
    let copied = no_overlay(&store);
    Ok(Images { of: of??, roots, copied, store: Some(store) })
}

/// The images of a job as far as they are here, and what would have to be done for the others: nothing is fetched or built.
pub(super) fn at_hand(args: &RunArgs, built: &Built, job: &BuiltJob) -> Result<(Images, Vec<String>)> {
    let Wanted { images, roots } = Wanted::by(args, built, std::slice::from_ref(job))?;
    let mut missing = Vec::new();
    if images.is_empty() {
        return Ok((Images { store: None, of: HashMap::new(), roots, copied: None }, missing));
    }
    let store = image::open(args.image_root.as_deref())?;
    let mut of: HashMap<String, IndexMap<String, Descriptor>> = HashMap::new();
    for (job, role, image) in images {
        let ImageSource::Reference {} = image.source else {
            let verb = if image.source.is_built() { "built" } else { "brought in" };
            missing.push(format!("the image `{}` of `{}` is {verb} first", image.reference, role.name));
            continue;
        };
        let found = image.reference.parse().map_err(Error::from).and_then(|reference| store.find(&reference));
        let Some(found) = found.map_err(|error| at(image, error))? else {
            missing.push(format!("the image `{}` of `{}` is fetched first", image.reference, role.name));
            continue;
        };
        let found = store.image(&found, &Platform::here())?;
        unpack::layers(&store, &found, &untold, &AtomicBool::new(false))?;
        of.entry(job.plan.name.clone()).or_default().insert(role.name.clone(), found.descriptor);
    }
    Ok((Images { of, roots, copied: None, store: Some(store) }, missing))
}

/// Why there can be no overlay over folders of the store; nothing where there can.
fn no_overlay(store: &Store) -> Option<String> {
    if std::env::var_os("JOBC_COPY_LAYERS").is_some_and(|value| !value.is_empty() && value != "0") {
        return Some("JOBC_COPY_LAYERS asks for it".to_owned());
    }
    overlay_over(&store.root().join("unpacked"))
        .err()
        .map(|why| format!("no overlay can be made over `{}`: {why}", store.root().display()))
}

/// The same error, at the field of the job file that declares the image.
fn at(image: &ImagePlan, error: Error) -> Error {
    let field = image.declared_at.to_string().trim_start_matches('/').replace('/', ".");
    Error { message: format!("`{field}`: {}", error.message), place: None, ..error }
}

/// A folder that is a root file system, and no image that would have to be unpacked.
fn as_it_is(built: &Built, image: &ImagePlan) -> Option<String> {
    let ImageSource::File { path } = &image.source else { return None };
    let path = built.folder.join(path);
    (path.is_dir() && !path.join("oci-layout").is_file()).then(|| path.to_string_lossy().into_owned())
}

/// Whether a built plan has the role's files beside its bundles.
fn brings_its_own(job: &BuiltJob, role: &RolePlan) -> bool {
    let prefix = format!("oci/{}-0/rootfs", role.name);
    job.files.iter().any(|file| {
        file.path
            .as_str()
            .strip_prefix(&prefix)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '.']))
    })
}

/// What brings images in, each once.
struct Provider<'a> {
    args: &'a RunArgs,
    built: &'a Built,
    store: &'a Store,
    told: Told<'a>,
    stopped: &'a AtomicBool,
    /// Manifests by what stands in the plan.
    known: RefCell<HashMap<String, Descriptor>>,
}

impl Provider<'_> {
    /// The manifest of a role's image, whose layers are unpacked.
    fn provide(&self, job: &BuiltJob, image: &ImagePlan) -> Result<Descriptor> {
        let key = format!("{}\n{}", job.plan.name, image.reference);
        let key = if image.source.is_built() { key } else { image.reference.clone() };
        if let Some(known) = self.known.borrow().get(&key) {
            return Ok(known.clone());
        }
        let found = match &image.source {
            ImageSource::Reference {} => self.fetched(&image.reference),
            ImageSource::File { path } => {
                source::the_image(self.store, &self.built.folder.join(path), self.told, self.stopped)
            }
            _ => built::build(self, job, image),
        };
        let image = self.store.image(&found?, &Platform::here())?;
        unpack::layers(self.store, &image, self.told, self.stopped)?;
        self.known.borrow_mut().insert(key, image.descriptor.clone());
        Ok(image.descriptor)
    }

    /// An image by its reference: of the store, or of its registry.
    fn fetched(&self, name: &str) -> Result<Descriptor> {
        let reference: Reference = name.parse()?;
        let here = Platform::here();
        let there = self.store.find(&reference)?.filter(|there| self.store.is_whole(there, &here));
        match (self.args.pulls(), there) {
            (Pull::Missing | Pull::Never, Some(there)) => Ok(there),
            (Pull::Never, None) => Err(Error::new(Kind::State, format!("the image `{name}` is not here"))
                .help(format!("fetch it with `jobc image pull {name}`, or leave `--pull never` out"))),
            (Pull::Missing | Pull::Always, _) => {
                let fetch: Box<dyn Fetch> = registries::fetcher(false)?;
                fetch.fetch(self.store, &reference, &here, self.told)
            }
        }
    }
}

/// Does the work in a thread. A signal that ends a program asks the work to end, and a second one does not wait for it.
fn interruptible<T: Send>(
    signals: &Signals,
    stopped: &AtomicBool,
    work: impl FnOnce() -> T + Send,
) -> Result<T> {
    let mut ended_by = None;
    let result = interruptible::run(signals, work, |signal| {
        if ended_by.replace(signal).is_some() {
            end_by(signal);
        }
        stopped.store(true, Ordering::Relaxed);
    });
    ended_by.map_or(result, |signal| end_by(signal))
}
