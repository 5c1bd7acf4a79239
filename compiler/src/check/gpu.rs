//! Facts for lints about a role's GPUs: the CUDA version of its image, its cards, and in `host_facts` the cards of the
//! target.

mod host_facts;

use super::view::{RoleView, View};
use crate::stdlib::{Version, images, models};
use jobc_schema::Pointer;
use jobc_schema::gpu::{Gpu, OneOrMany, Vendor};
use jobc_schema::plan::{GpuPlan, ImagePlan, ImageSource};

pub(super) use host_facts::{Card, HostGpuFacts, is_smaller};

/// The NVIDIA GPUs that a role requests.
pub(super) fn nvidia<'a>(role: &RoleView<'a>) -> Option<&'a GpuPlan> {
    role.plan.gpus().filter(|gpu| gpu.vendor == Vendor::Nvidia)
}

/// A CUDA version and its place in the job file.
pub(super) struct Toolkit {
    /// The version.
    pub(super) version: Version,
    /// The place.
    pub(super) at: Pointer,
    /// Its origin, as text: `` the image `…` ``.
    pub(super) whose: String,
}

/// The CUDA version of a role's image, from its tag or CUDA_VERSION in its Dockerfile.
pub(super) fn image_toolkit(view: &View<'_>, role: &RoleView<'_>) -> Option<Toolkit> {
    let image = view.plan.image_of(role.plan)?;
    let (version, at) = cuda_of(view, image)?;
    let (reference, _) = view.base(image).unwrap_or((&image.reference, Pointer::ROOT));
    Some(Toolkit { version: Version::parse(&version)?, at, whose: format!("the image `{reference}`") })
}

/// The CUDA version that a role's program needs, by `gpu.cuda`.
pub(super) fn program_toolkit(role: &RoleView<'_>) -> Option<Toolkit> {
    let version = Version::parse(nvidia(role)?.cuda.as_deref()?)?;
    let whose = format!("the program of role `{}`", role.plan.name);
    Some(Toolkit { version, at: gpu_at(role).key("cuda"), whose })
}

fn cuda_of(view: &View<'_>, image: &ImagePlan) -> Option<(String, Pointer)> {
    if let ImageSource::Dockerfile { env, .. } = &image.source
        && let Some(version) = env.get("CUDA_VERSION")
    {
        return Some((version.clone(), image.declared_at.key("dockerfile")));
    }
    let (reference, at) = view.base(image)?;
    Some((images::facts(reference)?.cuda?, at))
}

/// Where the job file requests a role's GPUs.
pub(super) fn gpu_at(role: &RoleView<'_>) -> Pointer {
    role.at().keys(["resources", "gpu"])
}

/// Where the job file names a model: the value of `model`, or an item of it.
pub(super) fn model_at(role: &RoleView<'_>, index: usize) -> Pointer {
    let at = gpu_at(role).key("model");
    let gpu = role.spec.and_then(|spec| spec.resources.as_ref()).and_then(|r| r.gpu.as_ref());
    match gpu {
        Some(Gpu::Rules(rules)) if matches!(rules.model, Some(OneOrMany::Many(_))) => at.index(index),
        _ => at,
    }
}

/// The cards with these names; unknown names are left out.
pub(super) fn cards(names: &[String]) -> Vec<(&str, models::ModelMatch)> {
    names.iter().filter_map(|name| Some((name.as_str(), models::find(name)?))).collect()
}
