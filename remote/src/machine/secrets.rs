//! Secrets of a job: the plan there names variables, and their values are sent to the command that starts the job.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jobc_container::secret::Secret;
use jobc_schema::plan::{JobPlan, SecretPlan};
use jobc_sys::error::{Error, Kind, Result};

use crate::place::JobSecrets;

/// Has the plan take its secrets from variables. Returns the lines of a shell script that set them.
pub(super) fn pass_on(plan: &mut JobPlan, secrets: &JobSecrets) -> Result<Secret> {
    let mut lines = Vec::new();
    for (number, (name, source)) in plan.secrets.iter_mut().enumerate() {
        let of_registry = || {
            let registry = plan.registries.iter().find(|(_, registry)| registry.password_secret == *name);
            registry.and_then(|(host, _)| secrets.passwords.get(host))
        };
        let Some(value) = secrets.values.get(name).or_else(of_registry) else { continue };
        if value.bytes().contains(&0) {
            let message = format!("the secret `{name}` has a null byte, which a variable cannot have");
            return Err(Error::new(Kind::Unsupported, message).help("encode it, such as in base64"));
        }
        let variable = format!("JOBC_SECRET_{number}");
        let mut bytes = value.bytes().to_vec();
        bytes.push(b'x');
        let encoded = STANDARD.encode(bytes);
        // A shell removes trailing newlines from a command's output.
        let line =
            format!("value=$(printf %s '{encoded}' | base64 -d)\nexport {variable}=\"${{value%x}}\"\n");
        lines.extend_from_slice(line.as_bytes());
        *source = SecretPlan::Env(variable);
    }
    Ok(Secret::new(lines))
}
