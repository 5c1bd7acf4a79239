//! J0354: a grace period that torchrun does not give to its processes.

use jobc_schema::Seconds;
use jobc_schema::plan::{BuildStep, ImagePlan, ImageSource};

use crate::check::command::Command;
use crate::check::view::View;
use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::resolve::SHUTDOWN_SECONDS;
use crate::stdlib::Version;

/// The first release of PyTorch whose torchrun reads how long to wait.
const FIRST: &str = "2.12";

/// Warns about a longer grace period with a release of PyTorch that is known not to heed it.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in &view.roles {
        let grace = role.plan.grace_period_seconds;
        let torchrun = role.commands.iter().any(Command::is_torchrun);
        let Some(image) = view.plan.image_of(role.plan).filter(|_| torchrun && grace > SHUTDOWN_SECONDS)
        else {
            continue;
        };
        let Some(release) =
            release(view, image).filter(|release| Version::parse(release) < Version::parse(FIRST))
        else {
            continue;
        };
        let message = format!(
            "`torchrun` of PyTorch {release} kills its processes {SHUTDOWN_SECONDS} s after SIGTERM, not after the grace period of {}",
            Seconds(grace)
        );
        sink.push(Diagnostic::warning(codes::TORCHRUN_GRACE, message).at(&role.run_at(), "").note(format!(
            "PyTorch {FIRST} waits as long as the grace period; with this release, save within {SHUTDOWN_SECONDS} s or at intervals"
        )));
    }
}

/// The release of PyTorch in an image, by the tag of its own image or the version of its package.
fn release(view: &View<'_>, image: &ImagePlan) -> Option<String> {
    if let ImageSource::Build { steps, .. } = &image.source {
        let packages = steps.iter().filter_map(|step| match step {
            BuildStep::Python(python) => Some(&python.packages),
            _ => None,
        });
        if let Some(version) = packages.flatten().find_map(|package| package.strip_prefix("torch==")) {
            return Some(version.to_owned());
        }
    }
    let (base, _) = view.base(image)?;
    let (_, tag) = base.split_once("pytorch/pytorch:")?;
    tag.split('-').next().map(str::to_owned)
}
