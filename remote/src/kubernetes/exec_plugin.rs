//! Exec plugins: programs that print a token or a certificate (`client.authentication.k8s.io`).

use std::io::IsTerminal as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::yaml;
use serde::Deserialize;
use serde_json::json;

/// How long before its end a credential is replaced.
const EXPIRY_MARGIN: Duration = Duration::from_mins(1);

/// A plugin of a kubeconfig.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ExecPlugin {
    pub(crate) api_version: String,
    pub(crate) command: String,
    args: Vec<String>,
    env: Vec<Variable>,
    install_hint: String,
    interactive_mode: Option<InteractiveMode>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Variable {
    name: String,
    value: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
enum InteractiveMode {
    Never,
    IfAvailable,
    Always,
}

/// The output of a plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Credential {
    pub(crate) token: Option<String>,
    /// Certificate and key in PEM format.
    pub(crate) certificate: Option<(Vec<u8>, Vec<u8>)>,
    expires: Option<SystemTime>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    api_version: String,
    status: Option<AnswerStatus>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AnswerStatus {
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
    expiration_timestamp: Option<String>,
}

impl Credential {
    /// Whether it will be refused soon.
    pub(crate) fn is_stale(&self) -> bool {
        self.expires.is_some_and(|end| SystemTime::now() + EXPIRY_MARGIN >= end)
    }
}

impl ExecPlugin {
    /// As above, with a relative path of the command made absolute; a bare name is searched in `PATH`.
    pub(crate) fn in_directory(&self, directory: &Path) -> Self {
        let is_path = self.command.contains('/') && !self.command.starts_with('/');
        let command = if is_path {
            directory.join(&self.command).to_string_lossy().into_owned()
        } else {
            self.command.clone()
        };
        Self { command, ..self.clone() }
    }

    /// Runs the plugin.
    ///
    /// # Errors
    ///
    /// It cannot run, it fails, or it prints no credential.
    pub(crate) fn run(&self) -> Result<Credential> {
        if !self.api_version.starts_with("client.authentication.k8s.io/v1") {
            return Err(self
                .failed(&format!("unsupported `apiVersion: {}`", self.api_version))
                .help("write `apiVersion: client.authentication.k8s.io/v1` in the kubeconfig"));
        }
        let terminal = std::io::stdin().is_terminal();
        let mode = self.interactive_mode.unwrap_or(InteractiveMode::IfAvailable);
        if mode == InteractiveMode::Always && !terminal {
            return Err(self.failed("it needs a terminal, and stdin is none"));
        }
        let interactive = terminal && mode != InteractiveMode::Never;
        let info = json!({
            "apiVersion": self.api_version, "kind": "ExecCredential", "spec": {"interactive": interactive},
        });
        let output = Command::new(&self.command)
            .args(&self.args)
            .envs(self.env.iter().map(|variable| (&variable.name, &variable.value)))
            .env("KUBERNETES_EXEC_INFO", info.to_string())
            .stdin(if interactive { Stdio::inherit() } else { Stdio::null() })
            .stderr(Stdio::inherit())
            .output()
            .map_err(|error| {
                let error = self.failed(&jobc_sys::error::describe_io(&error));
                if self.install_hint.is_empty() { error } else { error.help(self.install_hint.trim()) }
            })?;
        if !output.status.success() {
            return Err(self.failed(&output.status.to_string()));
        }
        self.parse(&String::from_utf8_lossy(&output.stdout))
    }

    /// Reads what a plugin printed, in JSON or YAML.
    fn parse(&self, text: &str) -> Result<Credential> {
        let value = serde_json::from_str(text).or_else(|_| yaml::read(text));
        let answer: Answer = value
            .and_then(|value| serde_json::from_value(value).map_err(|error| error.to_string()))
            .map_err(|why| self.failed(&format!("its output is not an ExecCredential: {why}")))?;
        if answer.api_version != self.api_version {
            return Err(self.failed(&format!(
                "it answers in `{}`, and the kubeconfig says `{}`",
                answer.api_version, self.api_version
            )));
        }
        let status = answer.status.unwrap_or_default();
        let certificate = status.client_certificate_data.zip(status.client_key_data);
        let credential = Credential {
            token: status.token.filter(|token| !token.is_empty()),
            certificate: certificate.map(|(certificate, key)| (certificate.into_bytes(), key.into_bytes())),
            expires: status.expiration_timestamp.and_then(|time| humantime::parse_rfc3339_weak(&time).ok()),
        };
        if credential.token.is_none() && credential.certificate.is_none() {
            return Err(self.failed("it printed neither a token nor a certificate"));
        }
        Ok(credential)
    }

    fn failed(&self, why: &str) -> Error {
        Error::new(Kind::System, format!("cannot get credentials from `{}`: {why}", self.command))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plugin() -> ExecPlugin {
        let version = "client.authentication.k8s.io/v1".to_owned();
        ExecPlugin { api_version: version, command: "x".to_owned(), ..ExecPlugin::default() }
    }

    #[test]
    fn tokens_and_certificates_are_read_from_json_and_yaml() {
        let json = r#"{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"t","expirationTimestamp":"2020-01-01T00:00:00Z"}}"#;
        let credential = plugin().parse(json).unwrap();
        assert_eq!(credential.token.as_deref(), Some("t"));
        assert!(credential.is_stale());
        let yaml = "apiVersion: client.authentication.k8s.io/v1\nstatus:\n  clientCertificateData: c\n  clientKeyData: k\n";
        let credential = plugin().parse(yaml).unwrap();
        assert_eq!(credential.certificate, Some((b"c".to_vec(), b"k".to_vec())));
        assert!(!credential.is_stale());
    }

    #[test]
    fn other_answers_are_refused() {
        for text in [
            "",
            "{}",
            r#"{"apiVersion":"client.authentication.k8s.io/v1beta1","status":{"token":"t"}}"#,
            r#"{"apiVersion":"client.authentication.k8s.io/v1","status":{}}"#,
        ] {
            assert!(plugin().parse(text).is_err(), "{text}");
        }
        assert!(ExecPlugin { api_version: "v1".to_owned(), ..plugin() }.run().is_err());
        let error = ExecPlugin {
            command: "/nonexistent".to_owned(),
            install_hint: "install it".to_owned(),
            ..plugin()
        }
        .run()
        .unwrap_err();
        assert_eq!(error.advice().as_deref(), Some("install it"));
    }
}
