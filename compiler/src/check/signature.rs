//! Which images of a job must be signed, where the policy of the target requires that.

use jobc_schema::Pointer;
use jobc_schema::plan::{BuildStep, ImagePlan, ImageSource, JobPlan};
use jobc_schema::reference::Parts;

use crate::diagnostic::{Diagnostic, Location, codes};

/// The images of registries that an image is or is made of. What is built here has no signature before it is pushed.
pub fn references(image: &ImagePlan) -> Vec<String> {
    let mut all: Vec<String> = match &image.source {
        ImageSource::Host { .. } | ImageSource::File { .. } => vec![],
        ImageSource::Reference {} => vec![image.reference.clone()],
        ImageSource::Build { from, steps, .. } => {
            let copied = steps.iter().filter_map(|step| match step {
                BuildStep::Copy(copy) => copy.image.clone(),
                _ => None,
            });
            std::iter::once(from.clone()).chain(copied).collect()
        }
        ImageSource::Dockerfile { base, locked, .. } => {
            let is_open = |base: &&String| !locked.contains_key(*base);
            let locked = locked.iter().map(|(name, digest)| match Parts::of(name).digest {
                Some(_) => name.clone(),
                None => format!("{name}@{digest}"),
            });
            base.iter().filter(is_open).cloned().chain(locked).collect()
        }
    };
    all.retain(|reference| reference != "scratch");
    all.sort();
    all.dedup();
    all
}

/// The error for an image of a job whose signature is missing: why.
pub fn refusal(job: &JobPlan, image: &ImagePlan, why: &str) -> Diagnostic {
    let target = &job.target.name;
    let policy = Pointer::ROOT.keys(["targets", target]).keys(["policy", "require_signature"]);
    Diagnostic::error(codes::UNSIGNED, format!("{why}; the policy of target `{target}` requires a signature"))
        .at_place(Location::value(&image.declared_at), "")
        .at_place(Location::target(&policy), "the policy")
}
