//! The secrets that a job needs: read from their sources here, and sent in the body of a request only.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use jobc_container::secret::Secret;
use jobc_job::secrets;
use jobc_remote::built::BuiltDirectory;
use jobc_remote::identity::Identity;
use jobc_remote::place::JobSecrets;
use jobc_schema::plan::SecretPlan;
use jobc_sys::error::{AtPath as _, Error, Kind, Result};

/// The values that the tasks of a job and its registries need.
pub(super) fn of(built: &BuiltDirectory, directory: &Path) -> Result<JobSecrets> {
    let plan = &built.plan;
    let mut found = JobSecrets::default();
    for name in secrets::used(plan) {
        if let Some(source) = plan.secrets.get(name)
            && !matches!(source, SecretPlan::Store { .. })
        {
            found.values.insert(name.to_owned(), secrets::read(name, source, directory)?);
        }
    }
    for (host, registry) in &plan.registries {
        if let Some(source) = plan.secrets.get(&registry.password_secret) {
            found
                .passwords
                .insert(host.clone(), secrets::read(&registry.password_secret, source, directory)?);
        }
    }
    if built.uses_secret(&format!("{}-ssh", plan.name)) {
        found.ssh_keys = ssh_keys()?;
    }
    Ok(found)
}

/// A key for ssh between the tasks, made by ssh-keygen in a private directory.
fn ssh_keys() -> Result<BTreeMap<String, Secret>> {
    let name = format!("jobc-keys-{}-{:x}", std::process::id(), Identity::random_salt());
    let directory = std::env::temp_dir().join(name);
    std::os::unix::fs::DirBuilderExt::mode(&mut fs::DirBuilder::new(), 0o700)
        .create(&directory)
        .at_path("create", &directory)?;
    let keys = generate(&directory.join("id_ed25519"));
    let _ = fs::remove_dir_all(&directory);
    keys
}

fn generate(key: &Path) -> Result<BTreeMap<String, Secret>> {
    let failed = |why: String| {
        Error::new(Kind::System, format!("ssh-keygen could not create the SSH keys of the tasks: {why}"))
            .help("install the package openssh-client")
    };
    let output = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-C", "jobc", "-f"])
        .arg(key)
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    let read = |path: &Path| fs::read(path).map(Secret::new).at_path("read", path);
    Ok(BTreeMap::from([
        ("id_ed25519".to_owned(), read(key)?),
        ("authorized_keys".to_owned(), read(&key.with_extension("pub"))?),
    ]))
}
