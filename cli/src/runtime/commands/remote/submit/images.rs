//! The images that a job builds: nodes must be able to pull them.

use jobc_registry::Client;
use jobc_remote::built::BuiltDirectory;
use jobc_remote::place::Problem;
use jobc_schema::plan::ImageSource;
use jobc_schema::reference::Reference;
use jobc_sys::error::Kind;

use crate::runtime::registries;

/// Checks that every image that the job builds is in the target's registry.
pub(super) fn check(built: &BuiltDirectory) -> Vec<Problem> {
    let plan = &built.plan;
    let mut problems = Vec::new();
    for image in plan.images.values() {
        if !matches!(image.source, ImageSource::Build { .. } | ImageSource::Dockerfile { .. }) {
            continue;
        }
        let registry = plan.target.settings.registry.as_ref();
        let reference = match registry {
            Some(registry) => format!("{}/{}", registry.trim_end_matches('/'), image.reference),
            None => image.reference.clone(),
        };
        let place = built.origin_of_image(&reference);
        let mut push = |is_warning: bool, message: String, help: Option<String>| {
            problems.push(Problem { is_warning, message, place: place.clone(), help });
        };
        if registry.is_none() {
            let message = format!("the nodes cannot get the image `{reference}`, which the job builds");
            push(
                false,
                message,
                Some("set `registry` of the target, then build and push the image".to_owned()),
            );
            continue;
        }
        match look_up(&reference) {
            Ok(true) => {}
            Ok(false) => push(
                false,
                format!("the image `{reference}`, which the job builds, is not in the registry"),
                Some(format!(
                    "build it with `jobc image build -t {reference}`, then `jobc image push {reference}`"
                )),
            ),
            Err(why) => {
                let message =
                    format!("cannot check whether the image `{reference}` is in the registry: {why}");
                push(true, message, None);
            }
        }
    }
    problems
}

/// Whether a registry has an image.
fn look_up(reference: &str) -> Result<bool, String> {
    let reference: Reference = reference.parse().map_err(|error| format!("{error}"))?;
    let client: Client = registries::client(false).map_err(|error| error.message)?;
    match client.resolve(&reference) {
        Ok(_) => Ok(true),
        Err(error) if error.kind == Kind::State => Ok(false),
        Err(error) => Err(error.message),
    }
}
