//! Metrics in lines of the output of a job that declares none: what training scripts and frameworks print.
//!
//! A metric is a known name with a number, such as `loss: 0.5`, `val_loss=0.5`, `'eval_loss': '0.5'` or
//! `train loss 0.5`. Prose has such words too. So the line must also count steps or epochs, be the state of a progress
//! bar, or consist of nothing but names and numbers.

use std::sync::LazyLock;

use regex::Regex;

/// The parts of names, between `_`, `/`, `.`, `-` and `@`, that say what a number is.
const KNOWN_PARTS: &str = "acc accuracy auc auroc bleu bpb bpc cer dice elbo f1 fid iou kl loss lr mae map miou mse \
    nll norm perplexity ppl precision psnr recall reward rmse rouge rouge1 rouge2 rougel score ssim wer";

/// Names and numbers. Some names are two words.
static PAIRS: LazyLock<Regex> = LazyLock::new(|| {
    let first =
        "train|training|val|valid|validation|test|eval|avg|average|mean|best|total|running|lm|grad|learning";
    let number = r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[-+]?[0-9]+)?|nan|[-+]?inf";
    let name = format!(r"(?:(?:{first})[ ])?[a-z][\w./@-]*");
    Regex::new(&format!(r#"(?i)(?:^|[^\w./@-])({name})["']?(\s*[:=]\s*|\s+)["']?({number})"#))
        .expect("a constant pattern")
});

/// The beginning of a state of a progress bar of Keras: `1875/1875 [====] - 5s`.
static PROGRESS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^\s*[0-9]+/[0-9]+\s").expect("a constant pattern"));

/// A name with a number, anywhere in a line.
struct Pair<'a> {
    /// What is before it.
    before: &'a str,
    name: &'a str,
    /// Whether only spaces part the name from the number.
    is_spaced: bool,
    number: f64,
    /// What is after it.
    after: &'a str,
}

/// The metrics of a line, by lowercase name.
pub(super) fn detect(line: &str) -> Vec<(String, f64)> {
    let pairs: Vec<Pair<'_>> = pairs(line).collect();
    if !pairs.iter().any(|pair| is_known(pair.name)) {
        return vec![];
    }
    let is_counted = super::counts(line.as_bytes()).iter().any(Option::is_some);
    let is_metric_line = is_counted || PROGRESS.is_match(line) || has_only(line, &pairs);
    let known = pairs.iter().filter(|pair| is_metric_line && is_known(pair.name));
    let found = known.filter(|pair| !pair.is_spaced || !is_prose(pair));
    found.map(|pair| (pair.name.to_lowercase(), pair.number)).collect()
}

fn pairs(line: &str) -> impl Iterator<Item = Pair<'_>> {
    PAIRS.captures_iter(line).filter_map(move |found| {
        let (name, between, number) = (found.get(1)?, found.get(2)?, found.get(3)?);
        let after = &line[number.end()..];
        let mut next = after.chars();
        // Not a count of a total, a time, a version, or a word.
        let is_number = match next.next() {
            Some('.' | ':' | '/') => !next.next().is_some_and(|c| c.is_ascii_digit()),
            Some(c) => !c.is_alphanumeric() && c != '_',
            None => true,
        };
        is_number.then_some(Pair {
            before: &line[..name.start()],
            name: name.as_str(),
            is_spaced: between.as_str().trim().is_empty(),
            number: number.as_str().parse().ok()?,
            after,
        })
    })
}

fn is_known(name: &str) -> bool {
    let name = name.to_lowercase().replace(' ', "_");
    let is_rate = name.ends_with("learning_rate");
    is_rate
        || name.split(['_', '/', '.', '-', '@']).any(|part| KNOWN_PARTS.split(' ').any(|known| known == part))
}

/// Whether the text around a name and a number that only spaces part is a sentence: `the loss 5 of them had`.
fn is_prose(pair: &Pair<'_>) -> bool {
    let before = pair.before.split_whitespace().next_back().unwrap_or_default();
    let follows_word =
        before.ends_with(char::is_alphabetic) && !before.contains(|c: char| c.is_ascii_digit());
    let mut words = pair.after.trim_start_matches('%').split_whitespace();
    let next = words.next().unwrap_or_default();
    let is_word = next.starts_with(char::is_alphabetic) && !next.contains(['=', ':']);
    let is_number = |word: &str| word.starts_with(|c: char| "+-.".contains(c) || c.is_ascii_digit());
    let is_sentence = is_word && (["in", "of", "to"].contains(&next) || !words.next().is_some_and(is_number));
    follows_word || is_sentence
}

/// Whether a line has no words but the names of its numbers.
fn has_only(line: &str, pairs: &[Pair<'_>]) -> bool {
    let mut from = 0;
    let mut rest = String::new();
    for pair in pairs {
        rest += line.get(from..pair.before.len()).unwrap_or_default();
        from = line.len() - pair.after.len();
    }
    rest += &line[from..];
    !rest.contains(char::is_alphanumeric)
}

#[cfg(test)]
mod tests;
