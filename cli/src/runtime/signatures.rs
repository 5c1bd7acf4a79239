//! Signatures of images: keys, and what the policy of a target requires.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use camino::Utf8Path;
use jobc_compiler::check::signature::{references, refusal};
use jobc_compiler::diagnostic::Diagnostic;
use jobc_image::Reference;
use jobc_registry::signature::{PublicKey, Requirement, Signature, Verification};
use jobc_schema::gpu::OneOrMany;
use jobc_schema::plan::{ImagePlan, JobPlan};
use jobc_schema::target::SignaturePolicy;
use jobc_sys::error::{Error, Kind, Result};

use crate::input::reason;

/// The maximum size of a key in bytes.
const MAX_KEY_BYTES: u64 = 64 << 10;

/// The result of verifying an image.
pub(crate) enum Found {
    /// Signed with the key of this name, at this location in the registry, for this repository.
    Signed { key: String, place: String, repository: Option<String> },
    /// Why not.
    Refused(String),
}

/// The texts of keys by their names, and whether a signature may name another repository.
pub(crate) struct Keys {
    texts: Vec<(String, Vec<u8>)>,
    any_name: bool,
}

impl Keys {
    /// Reads files.
    pub(crate) fn read(files: &[PathBuf], any_name: bool) -> Result<Self> {
        let texts = files.iter().map(|path| Ok((path.display().to_string(), read(path)?)));
        Ok(Self { texts: texts.collect::<Result<_>>()?, any_name })
    }

    /// The keys of a policy; the directory is that of the targets file.
    fn of_policy(policy: &SignaturePolicy, directory: Option<&Utf8Path>) -> Result<Self> {
        let keys = match &policy.key {
            OneOrMany::One(key) => std::slice::from_ref(key),
            OneOrMany::Many(keys) => keys,
        };
        let texts = keys.iter().enumerate().map(|(index, key)| {
            if key.trim_start().starts_with("-----BEGIN ") {
                return Ok((format!("key {} of the policy", index + 1), key.clone().into_bytes()));
            }
            let path = directory.unwrap_or(Utf8Path::new(".")).join(key);
            Ok((key.clone(), read(path.as_std_path())?))
        });
        Ok(Self { texts: texts.collect::<Result<_>>()?, any_name: policy.any_name })
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    use std::io::Read as _;
    let wrong = |error: &std::io::Error| {
        let why = reason(error);
        Error::new(Kind::Config, format!("cannot read the key `{}`: {why}", path.display()))
    };
    let mut text = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| wrong(&error))?;
    file.take(MAX_KEY_BYTES).read_to_end(&mut text).map_err(|error| wrong(&error))?;
    Ok(text)
}

/// The images of jobs that lack a signature which the policy of their target requires, as errors at their lines.
pub(crate) fn findings(jobs: &[JobPlan], directory: Option<&Utf8Path>) -> Result<Vec<Diagnostic>> {
    let mut found = Vec::new();
    each_unsigned(jobs, directory, |_| None, |job, image, why| found.push(refusal(job, image, why)))?;
    Ok(found)
}

/// As above, for names with digests in the lock.
pub(crate) fn findings_of_lock(
    jobs: &[JobPlan],
    directory: Option<&Utf8Path>,
    digests: &BTreeMap<String, String>,
) -> Result<Vec<Diagnostic>> {
    let mut found = Vec::new();
    let locked = |name: &str| digests.get(name).map(|digest| format!("{name}@{digest}"));
    each_unsigned(jobs, directory, locked, |job, image, why| found.push(refusal(job, image, why)))?;
    Ok(found)
}

/// Rejects built jobs with an unsigned image.
pub(crate) fn require<'a>(
    jobs: impl IntoIterator<Item = &'a JobPlan>,
    directory: Option<&Utf8Path>,
) -> Result<()> {
    let mut first = None;
    each_unsigned(
        jobs,
        directory,
        |_| None,
        |job, image, why| {
            first.get_or_insert_with(|| refusal(job, image, why));
        },
    )?;
    first.map_or(Ok(()), |found: Diagnostic| Err(Error::new(Kind::Config, found.message)))
}

/// Calls a function for each image without the signature that is required of it: of its name, or of the name that
/// `locked` gives it.
fn each_unsigned<'a>(
    jobs: impl IntoIterator<Item = &'a JobPlan>,
    directory: Option<&Utf8Path>,
    locked: impl Fn(&str) -> Option<String>,
    mut report: impl FnMut(&JobPlan, &ImagePlan, &str),
) -> Result<()> {
    // The jobs of a matrix have the same images.
    let mut known: BTreeMap<(String, String), Option<String>> = BTreeMap::new();
    for job in jobs {
        let policy = job.target.settings.policy.as_ref();
        let Some(policy) = policy.and_then(|policy| policy.require_signature.as_ref()) else { continue };
        let keys = Keys::of_policy(policy, directory)?;
        for image in job.images.values() {
            for name in references(image) {
                let name = locked(&name).unwrap_or(name);
                let key = (job.target.name.clone(), name.clone());
                if !known.contains_key(&key) {
                    let why = match look(&name, &keys, false)?.1 {
                        Found::Signed { .. } => None,
                        Found::Refused(why) => Some(why),
                    };
                    known.insert(key.clone(), why);
                }
                if let Some(why) = known.get(&key).and_then(Option::as_ref) {
                    report(job, image, why);
                }
            }
        }
    }
    Ok(())
}

/// Why an image of a registry lacks the signature that a job's target requires; none if it has it, or needs none.
pub(crate) fn why_unsigned(
    job: &JobPlan,
    name: &str,
    directory: Option<&Utf8Path>,
) -> Result<Option<String>> {
    let policy = job.target.settings.policy.as_ref();
    let Some(policy) = policy.and_then(|policy| policy.require_signature.as_ref()) else { return Ok(None) };
    Ok(match look(name, &Keys::of_policy(policy, directory)?, false)?.1 {
        Found::Signed { .. } => None,
        Found::Refused(why) => Some(why),
    })
}

/// Looks for a signature in the registry of an image; returns the image's name with its digest, and the result.
pub(crate) fn look(name: &str, keys: &Keys, plain_http: bool) -> Result<(String, Found)> {
    let reference: Reference = name.parse()?;
    let public: Vec<PublicKey> =
        keys.texts.iter().map(|(name, text)| PublicKey::from_pem(name, text)).collect::<Result<_>>()?;
    let client = super::registries::client(plain_http)?;
    let digest = match &reference.digest {
        Some(digest) => digest.clone(),
        None => client.resolve(&reference)?.digest,
    };
    let required = Requirement { keys: &public, any_name: keys.any_name };
    let found = match client.verify_signature(&reference, &digest, &required)? {
        Verification::Verified(Signature { key, place, repository }) => {
            Found::Signed { key, place, repository }
        }
        Verification::Refused(why) => Found::Refused(why),
    };
    Ok((reference.at(&digest).familiar(), found))
}
