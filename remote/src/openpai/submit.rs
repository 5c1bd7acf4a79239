//! Submits a job: one request with its configuration, then the tag that completes it.
//!
//! Every step can be repeated. A server refuses a second job of the same name, and the configuration of the first says
//! whether it is this one.

use std::collections::BTreeMap;

use jobc_container::secret::Secret;
use jobc_sys::error::{Error, Kind};
use serde_json::{Value, json};

use super::client::Client;
use super::names::{self, EXTRAS};
use super::problems;
use super::status::ApiError;
use crate::built::Protocol;
use crate::place::{Problem, Submission, SubmitError};

/// The line that ends a secret in the commands of a job.
const END_OF_SECRET: &[u8] = b"JOBC_SECRET";

/// Creates or completes the job.
pub(crate) fn submit(client: &Client, submission: &Submission<'_>) -> Result<(), SubmitError> {
    let protocol = protocol(submission)?;
    let name = protocol.manifest.text("/name");
    let path = names::path(&client.user(), name);
    let text = configuration(protocol, &submission.identity.digest, &values(submission)?)?;
    match client.post("/api/v2/jobs", &text) {
        Ok(()) => {}
        // From an earlier attempt, or an attempt whose answer was lost.
        Err(error) if error.is(409) => {
            let config = client.text(&format!("{path}/config"));
            let config = config.map_err(|error| error.into_error(&format!("read job `{name}`")))?;
            if names::digest_in(&config).as_deref() != Some(&submission.identity.digest) {
                return Err(SubmitError::Refused(vec![Problem {
                    is_warning: false,
                    message: format!("job `{name}` exists already, and is not this job"),
                    place: protocol.manifest.origin("/name"),
                    help: Some("submit again with `--new`".to_owned()),
                }]));
            }
        }
        Err(ApiError::Status(status)) if matches!(status.http, 400 | 403 | 404) => {
            return Err(SubmitError::Refused(problems::of_status(&protocol.manifest, &status)));
        }
        Err(error) => return Err(error.into_error(&format!("submit job `{name}`")).into()),
    }
    add_tag(client, &path, &names::tag(submission.identity))
        .map_err(|error| error.into_error(&format!("tag job `{name}`")).into())
}

/// Adds a tag; a release without tags has none.
pub(crate) fn add_tag(client: &Client, path: &str, tag: &str) -> Result<(), ApiError> {
    match client.put(&format!("{path}/tag"), &json!({"value": tag})) {
        Err(error) if error.is_unknown_route() => Ok(()),
        result => result,
    }
}

/// The job of a submission.
pub(crate) fn protocol<'a>(submission: &'a Submission<'_>) -> Result<&'a Protocol, Error> {
    submission.built.protocol.as_ref().ok_or_else(|| {
        Error::new(Kind::Config, "the built directory has no OpenPAI job")
            .help("add `openpai` to `backends` of the target")
    })
}

/// The values of the secrets that the job has, by name.
fn values(submission: &Submission<'_>) -> Result<BTreeMap<String, Secret>, Error> {
    let mut values = BTreeMap::new();
    for name in submission.built.protocol_secrets() {
        let of_registry = submission.built.plan.registries.iter().find_map(|(host, registry)| {
            let password = submission.secrets.passwords.get(host)?;
            (registry.password_secret == name).then_some(password)
        });
        let Some(value) = submission.secrets.values.get(name).or(of_registry) else {
            return Err(Error::new(Kind::Config, format!("the secret `{name}` has no value")));
        };
        let wrong = if std::str::from_utf8(value.bytes()).is_err() {
            "is not text"
        } else if value.bytes().split(|byte| *byte == b'\n').any(|line| line == END_OF_SECRET) {
            "has the line `JOBC_SECRET`, which ends a secret in the commands"
        } else {
            values.insert(name.to_owned(), value.clone());
            continue;
        };
        return Err(Error::new(Kind::Unsupported, format!("the secret `{name}` {wrong}")));
    }
    Ok(values)
}

/// The configuration to send: the built file with the digest of the plan and the values of secrets.
///
/// It stays block YAML with `secrets` at the beginning of a line, because a server hides what is between that line and
/// the next key at the beginning of a line in the configuration that it keeps, by a regular expression (pai,
/// `src/rest-server/src/utils/protocolSecret.js`).
fn configuration(
    protocol: &Protocol,
    digest: &str,
    secrets: &BTreeMap<String, Secret>,
) -> Result<String, Error> {
    let shown = splice(&protocol.text, digest, &BTreeMap::new());
    let mut expected = protocol.manifest.object.clone();
    expected["extras"][EXTRAS] = json!({"plan": digest});
    if let Some(fields) = expected.as_object_mut() {
        fields.shift_remove("secrets");
    }
    // The file is our own, but a value that is not hidden could be read by everybody: what is cut out is checked.
    if jobc_sys::yaml::read(&shown).as_ref() != Ok(&expected) {
        let message = format!("`{}` is not what `jobc build` writes", protocol.manifest.path);
        return Err(Error::new(Kind::Config, message));
    }
    Ok(splice(&protocol.text, digest, secrets))
}

/// Puts the digest below `extras`, and these secrets in place of the placeholders.
fn splice(text: &str, digest: &str, secrets: &BTreeMap<String, Secret>) -> String {
    let mut out = String::with_capacity(text.len() + 256);
    let mut is_in_secrets = false;
    for line in text.split_inclusive('\n') {
        if line.starts_with(|c: char| c.is_ascii_alphabetic()) {
            is_in_secrets = line.trim_end() == "secrets:";
        }
        if is_in_secrets {
            continue;
        }
        if line.trim_end() == "extras:" {
            if !secrets.is_empty() {
                out += "secrets:\n";
                for (name, value) in secrets {
                    // A JSON string is a YAML string in double quotes, on one line.
                    let value = Value::String(String::from_utf8_lossy(value.bytes()).into_owned());
                    out += &format!("  {}: {value}\n", Value::String(name.clone()));
                }
            }
            out += line;
            out += &format!("  {EXTRAS}:\n    plan: \"{digest}\"\n");
            continue;
        }
        out += line;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::built::Manifest;

    const TEXT: &str = "protocolVersion: 2\nname: gpt\nsecrets:\n  login: ${env:LOGIN}\ntaskRoles:\n  main:\n    commands:\n    - |\n      secrets:\n        x\nextras:\n  submitFrom: jobc\n";

    fn job() -> Protocol {
        let object = jobc_sys::yaml::read(TEXT).unwrap();
        Protocol { manifest: Manifest::new("openpai/job.yaml", object), text: TEXT.to_owned() }
    }

    #[test]
    fn the_values_of_secrets_are_where_the_server_hides_them() {
        let secrets = BTreeMap::from([("login".to_owned(), Secret::new("a \"b\"\n<% c %>: #"))]);
        let text = configuration(&job(), "abc", &secrets).unwrap();
        let sent = jobc_sys::yaml::read(&text).unwrap();
        assert_eq!(sent["secrets"]["login"], "a \"b\"\n<% c %>: #");
        assert_eq!(sent["extras"], json!({"jobc": {"plan": "abc"}, "submitFrom": "jobc"}));
        assert_eq!(sent["taskRoles"], job().manifest.object["taskRoles"]);
        // The server's rule: from `secrets:` at the beginning of a line to the next word there.
        let start = text.find("\nsecrets:").unwrap() + 1;
        let rest = &text[start + "secrets:".len()..];
        let end = rest
            .match_indices('\n')
            .find(|(at, _)| rest[at + 1..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'));
        let kept = format!("{}{}", &text[..start], &rest[end.unwrap().0..]);
        assert!(!kept.contains("<% c %>") && kept.ends_with("submitFrom: jobc\n"), "{kept}");
        assert_eq!(names::digest_in(&text).as_deref(), Some("abc"));
    }

    #[test]
    fn another_file_is_not_sent() {
        let mut other = job();
        other.text = other.text.replace("extras:\n  submitFrom: jobc\n", "extras: {submitFrom: jobc}\n");
        assert!(configuration(&other, "abc", &BTreeMap::new()).is_err());
    }
}
