//! Certificates that a command trusts while an image is built: a file that exists for the command alone, and variables
//! that name it to the programs that download.

use super::run::write;
use crate::build::access::Certificates;
use crate::build::container::{CommandMount, MountSource};
use crate::build::work::StepDirectory;
use jobc_sys::error::Result;

/// The directory of the files in the container.
const DIRECTORY: &str = "/run/jobc/certificates";

/// Variables with the path of a file of certificates: OpenSSL, curl, requests and pip, git, Node.js, npm, cargo, conda, the
/// AWS CLI.
const VARIABLES: [&str; 10] = [
    "SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
    "NPM_CONFIG_CAFILE",
    "CARGO_HTTP_CAINFO",
    "CONDA_SSL_VERIFY",
    "AWS_CA_BUNDLE",
];

/// The mounts of the certificates; their variables are added unless the image or the build sets them.
pub(super) fn mounts(
    step: &StepDirectory,
    certificates: &Certificates,
    environment: &mut Vec<String>,
) -> Result<Vec<CommandMount>> {
    let bundle = format!("{DIRECTORY}/ca.pem");
    let apt = format!("Acquire::https::CAInfo \"{bundle}\";\n");
    let mut add = |name: &str, value: &str| {
        if !environment.iter().any(|set| set.split('=').next() == Some(name)) {
            environment.push(format!("{name}={value}"));
        }
    };
    for name in VARIABLES {
        add(name, &bundle);
    }
    // apt reads no variable, but a configuration file that one names.
    add("APT_CONFIG", &format!("{DIRECTORY}/apt.conf"));
    [("ca.pem", certificates.pem()), ("apt.conf", apt.as_bytes())]
        .map(|(name, content)| {
            let path = step.path().join(name);
            write(&path, content, 0o644)?;
            Ok(CommandMount {
                target: format!("{DIRECTORY}/{name}"),
                source: MountSource::Path(path),
                read_only: true,
            })
        })
        .into_iter()
        .collect()
}
