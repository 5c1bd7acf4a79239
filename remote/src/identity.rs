//! The identity of a job, by its name and the digest of its plan.

use std::hash::{BuildHasher as _, RandomState};

use jobc_schema::digest::Digest;
use jobc_schema::plan::JobPlan;

/// Length of the suffix of a run's name.
const SUFFIX_LENGTH: usize = 5;
/// Kubernetes' own alphabet for generated names: no vowels, so no words, and no characters that look alike.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// The identity of a job: the same name and plan are the same job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The name in the job file.
    pub job: String,
    /// The digest of the plan with the target's settings, in hexadecimal digits.
    pub digest: String,
}

impl Identity {
    /// The identity of a plan as the compiler made it.
    pub fn of(plan: &JobPlan) -> Self {
        Self { job: plan.name.clone(), digest: plan.digest().hex().to_owned() }
    }

    /// As above, with the job's files: other content is another job.
    #[must_use]
    pub fn with_content(self, content: &Digest) -> Self {
        let digest = Digest::of(format!("{} {}", self.digest, content.hex()).as_bytes()).hex().to_owned();
        Self { digest, ..self }
    }

    /// Digits of the digest in a label or a tag.
    pub const LABEL_LENGTH: usize = JobPlan::LABEL_LENGTH;

    /// The value of a label with the digest, which may have at most 63 characters.
    pub fn label(&self) -> &str {
        &self.digest[..Self::LABEL_LENGTH.min(self.digest.len())]
    }

    /// The name of a run: the same for the same plan and salt, so that a repeated submission finds its own objects.
    pub fn run_name(&self, salt: u64) -> String {
        let hashed = Digest::of(format!("{} {} {salt}", self.job, self.digest).as_bytes());
        let number = u64::from_str_radix(&hashed.hex()[..15], 16).unwrap_or_default();
        format!("{}-{}", self.job, suffix(number))
    }

    /// A salt that no other submission has.
    pub fn random_salt() -> u64 {
        RandomState::new().hash_one(std::time::SystemTime::now()) | 1 << 63
    }
}

/// Whether a text has the form of the suffix of a run's name.
pub(crate) fn is_suffix(text: &str) -> bool {
    text.len() == SUFFIX_LENGTH && text.bytes().all(|byte| ALPHABET.contains(&byte))
}

fn suffix(mut number: u64) -> String {
    let mut text = String::new();
    for _ in 0..SUFFIX_LENGTH {
        let count = ALPHABET.len() as u64;
        text.push(char::from(ALPHABET[usize::try_from(number % count).unwrap_or_default()]));
        number /= count;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_plan_has_the_same_name_and_another_salt_another() {
        let identity = Identity { job: "gpt".to_owned(), digest: "ab".repeat(32) };
        let name = identity.run_name(0);
        assert_eq!(name, identity.run_name(0));
        assert_ne!(name, identity.run_name(1));
        assert!(name.starts_with("gpt-") && name.len() == 9, "{name}");
        assert_eq!(identity.label().len(), 32);
        assert_ne!(Identity::random_salt(), Identity::random_salt());
    }
}
