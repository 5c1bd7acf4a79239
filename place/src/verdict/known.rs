//! The sentences of programs and the words of places, from the data file.

use std::sync::LazyLock;

use serde::Deserialize;

use super::Verdict;

/// What the data file has.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    /// The cause before its consequences: the first entry that fits a line decides.
    sentences: Vec<Sentence>,
    words: Vec<PlaceWord>,
    xids: Vec<Xid>,
}

/// An error of NVIDIA's driver, by its number (docs.nvidia.com, "XID Errors").
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Xid {
    #[serde(rename = "xid")]
    number: u64,
    /// What it means of the GPU.
    what: String,
    /// What to do if the node is at fault; of the others, the program may be.
    #[serde(default)]
    next: Option<String>,
}

/// A sentence of a program, library or tool.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sentence {
    /// Parts of a line that are all in it.
    line: Vec<String>,
    /// The exit code that the attempt has with it.
    #[serde(default)]
    code: Option<u8>,
    /// Whether it is about tasks with GPUs, or about those without.
    #[serde(default)]
    gpus: Option<bool>,
    /// It says that a peer is gone: what happened to the peer is the cause.
    #[serde(default)]
    pub(super) is_consequence: bool,
    /// It is that of a failed check before the command.
    #[serde(default)]
    pub(super) is_preflight: bool,
    /// What it means.
    pub(super) verdict: Verdict,
    /// What to do next.
    pub(super) next: String,
}

/// A word of a place, such as the reason of a pod or the state of a Slurm job.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlaceWord {
    #[serde(rename = "word")]
    text: String,
    /// What it means.
    pub(super) verdict: Verdict,
    /// What to do next.
    pub(super) next: String,
}

static KNOWN: LazyLock<Known> =
    LazyLock::new(|| serde_json::from_str(include_str!("known.json")).expect("the table of this program"));

/// The first known sentence in these lines, and the last line that has it.
pub(super) fn sentence(
    lines: &[String],
    code: Option<u8>,
    has_gpus: bool,
) -> Option<(&'static Sentence, &str)> {
    let fits = |sentence: &Sentence, line: &str| {
        sentence.code.is_none_or(|needed| Some(needed) == code)
            && sentence.gpus.is_none_or(|gpus| gpus == has_gpus)
            && sentence.line.iter().all(|part| line.contains(part.as_str()))
    };
    KNOWN.sentences.iter().find_map(|sentence| {
        let line = lines.iter().rfind(|line| fits(sentence, line))?;
        Some((sentence, line.as_str()))
    })
}

/// What a word of a place means, if it says more than the exit code.
pub(super) fn word(word: &str) -> Option<&'static PlaceWord> {
    KNOWN.words.iter().find(|known| known.text == word)
}

/// An error of a GPU by its number, and what to do if the node is at fault for it.
pub fn xid(number: u64) -> (String, Option<&'static str>) {
    let known = KNOWN.xids.iter().find(|known| known.number == number);
    let what = known.map(|known| format!(": {}", known.what)).unwrap_or_default();
    (format!("XID {number}{what}"), known.and_then(|known| known.next.as_deref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_a_gpu_says_whose_it_is() {
        assert_eq!(xid(31).1, None);
        let (what, next) = xid(79);
        assert_eq!(what, "XID 79: it has fallen off the bus");
        assert!(next.is_some_and(|next| next.starts_with("have the node")));
        assert_eq!(xid(9999), ("XID 9999".to_owned(), None));
        let numbers: Vec<u64> = KNOWN.xids.iter().map(|known| known.number).collect();
        assert!(numbers.is_sorted_by(|one, other| one < other), "{numbers:?}");
    }

    #[test]
    fn no_sentence_is_hidden_by_one_before_it() {
        for (number, sentence) in KNOWN.sentences.iter().enumerate() {
            let line = sentence.line.join(" ");
            let first =
                super::sentence(std::slice::from_ref(&line), sentence.code, sentence.gpus == Some(true));
            let first = first.unwrap().0;
            assert!(std::ptr::eq(first, sentence), "entry {number} is hidden: {line}");
            assert!(!sentence.next.is_empty() && !sentence.next.ends_with('.'), "{line}");
        }
    }

    #[test]
    fn words_are_there_once() {
        for known in &KNOWN.words {
            assert!(std::ptr::eq(word(&known.text).unwrap(), known), "{} is there twice", known.text);
        }
    }
}
