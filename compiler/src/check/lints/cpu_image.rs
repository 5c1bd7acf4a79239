//! J0329: GPUs in an image that cannot use them.

use jobc_schema::Pointer;
use jobc_schema::gpu::Vendor;
use jobc_schema::plan::{BuildStep, ImagePlan, ImageSource};

use crate::check::gpu::gpu_at;
use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Location, Sink, codes};
use crate::stdlib::images::{self, ImageFacts};

/// Maximum number of roles that one finding points at.
const MAX_ROLES: usize = 3;

/// Words of packages and commands that bring a GPU library into an image.
const GPU_PACKAGES: [&str; 16] = [
    "torch",
    "tensorflow",
    "jax",
    "cuda",
    "cupy",
    "nvidia",
    "rocm",
    "vllm",
    "paddle",
    "mxnet",
    "numba",
    "onnxruntime-gpu",
    "xgboost",
    "lightgbm",
    "rapids",
    "deepspeed",
];

/// Warns where a GPU would lie idle because the image has no CUDA, or another vendor's library.
///
/// Silent if anything could install a library: pip wheels contain their own CUDA. An image is reported once, with all
/// roles that request GPUs in it.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    let mut found: Vec<Mismatch<'_>> = Vec::new();
    for role in view.roles.iter().filter(|role| role.gpus() > 0) {
        let Some(image) = view.plan.image_of(role.plan) else { continue };
        let Some((reference, at)) = view.base(image) else { continue };
        let Some(facts) = images::facts(reference) else { continue };
        let vendor = role.plan.resources.gpu.as_ref().map_or(Vendor::Nvidia, |gpu| gpu.vendor);
        let Some((what, advice, better)) = mismatch(reference, &facts, vendor) else { continue };
        if facts.vendor.is_none() && may_bring(role, image) {
            continue;
        }
        match found.iter_mut().find(|known| known.at == at && known.what == what) {
            Some(known) => known.roles.push(role),
            None => found.push(Mismatch { at, what, advice, better, roles: vec![role] }),
        }
    }
    for mismatch in found {
        sink.push(mismatch.report());
    }
}

/// The suggested fix, if known.
enum Better<'a> {
    Image { from: &'a str, to: String },
    Vendor(&'static str),
    Unknown,
}

/// An image, and the roles whose GPUs would lie idle in it.
struct Mismatch<'a> {
    at: Pointer,
    what: String,
    advice: String,
    better: Better<'a>,
    roles: Vec<&'a RoleView<'a>>,
}

impl Mismatch<'_> {
    fn report(self) -> Diagnostic {
        let names: Vec<String> = self.roles.iter().map(|role| format!("`{}`", role.plan.name)).collect();
        let who = match &names[..] {
            [only] => format!("role {only} requests"),
            [first, second] => format!("roles {first} and {second} request"),
            _ => format!("role {} and {} others request", names[0], names.len() - 1),
        };
        let mut diagnostic =
            Diagnostic::warning(codes::CPU_IMAGE, format!("{who} GPUs, but {}", self.what)).at(&self.at, "");
        for role in self.roles.iter().take(MAX_ROLES) {
            diagnostic = diagnostic.at(&gpu_at(role), "");
        }
        diagnostic = match (self.better, self.roles.first()) {
            (Better::Image { from, to }, _) => {
                diagnostic.write(Location::inside(&self.at, from, 0..from.len()), &to)
            }
            (Better::Vendor(vendor), Some(role)) => diagnostic.set(&gpu_at(role).key("vendor"), vendor),
            _ => diagnostic,
        };
        diagnostic.note(self.advice)
    }
}

fn mismatch<'a>(
    reference: &'a str,
    facts: &ImageFacts,
    vendor: Vendor,
) -> Option<(String, String, Better<'a>)> {
    match facts.vendor {
        Some(made_for) if made_for == vendor => None,
        Some(made_for) => {
            let what = format!("the image `{reference}` is made for GPUs of {}", made_for.manufacturer());
            let (wanted, key) = (vendor.manufacturer(), made_for.as_str());
            Some((
                what,
                format!("use an image for {wanted}, or write `vendor: {key}` under `gpu`"),
                Better::Vendor(key),
            ))
        }
        None if reference.contains("tensorflow/tensorflow:") => {
            let what = format!("the image `{reference}` is the one without GPU support");
            let to = format!("{reference}-gpu");
            Some((what, format!("write `{to}`"), Better::Image { from: reference, to }))
        }
        None => {
            let what = format!("the image `{reference}` has no GPU library, and nothing installs one");
            Some((
                what,
                "use an image such as `nvidia/cuda` or `pytorch/pytorch`, or install the library".to_owned(),
                Better::Unknown,
            ))
        }
    }
}

/// Whether a build step or the command may bring a GPU library.
fn may_bring(role: &RoleView<'_>, image: &ImagePlan) -> bool {
    let names = |text: &str| GPU_PACKAGES.iter().any(|word| text.contains(word));
    let installs =
        |text: &str| ["pip", "conda", "uv ", "poetry", "apt"].iter().any(|tool| text.contains(tool));
    if installs(&role.text) {
        return true;
    }
    let ImageSource::Build { steps, .. } = &image.source else { return false };
    steps.iter().any(|step| match step {
        // Requirements files and archives are not read.
        BuildStep::Python(python) => {
            python.requirements.is_some() || python.packages.iter().any(|package| names(package))
        }
        BuildStep::Conda(conda) => {
            conda.file.is_some() || conda.packages.iter().any(|package| names(package))
        }
        BuildStep::Apt(packages) => packages.iter().any(|package| names(package)),
        BuildStep::Copy(copy) => copy.image.is_some(),
        BuildStep::Run(text) => installs(text) || names(text) || text.contains("requirements"),
        BuildStep::Env(_) | BuildStep::Workdir(_) | BuildStep::User(_) => false,
    })
}
