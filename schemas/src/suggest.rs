//! "Did you mean": the known name that is nearest to an unknown one.

/// Names a message lists before it stops.
const MAX_LISTED: usize = 12;

/// The nearest known name, if one is near enough to be meant.
///
/// Case, `_` and `-` count for little: `shmSize` finds `shm_size`. Of two equally near names the first wins.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = fold(name);
    // A third of the letters may differ; one letter in short names, and none in names of two letters.
    let limit = match wanted.len() {
        0..=2 => 0,
        3..=5 => 1,
        length => (length / 3).min(4),
    };
    let mut best: Option<(usize, &str)> = None;
    // `mem` for `memory`: a beginning is a guess only where nothing is near.
    let mut begun: Option<&str> = None;
    for candidate in known {
        if candidate == name {
            continue;
        }
        let folded = fold(candidate);
        if wanted.len() > 2 && folded.starts_with(&wanted) {
            begun = begun.or(Some(candidate));
        }
        if folded.len().abs_diff(wanted.len()) > limit {
            continue;
        }
        let distance = distance(&wanted, &folded);
        if distance <= limit && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, name)| name).or(begun)
}

/// The only known name that begins as a name does, with four letters at least and half of them: `prepare` is
/// `preprocess`.
pub fn similar<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = fold(name);
    let alike = |candidate: &&str| {
        let folded = fold(candidate);
        let shared = wanted.iter().zip(&folded).take_while(|(a, b)| a == b).count();
        *candidate != name && shared >= 4 && shared * 2 >= wanted.len()
    };
    let mut found = known.into_iter().filter(alike);
    found.next().filter(|_| found.next().is_none())
}

/// The known names for a message: `` `a`, `b` and `c` ``, cut after a dozen.
pub fn list<'a>(known: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = known.into_iter().map(|name| format!("`{name}`")).collect();
    match names.as_slice() {
        [] => "none".to_owned(),
        [only] => only.clone(),
        [first @ .., last] if names.len() <= MAX_LISTED => format!("{} and {last}", first.join(", ")),
        _ => format!("{} and {} more", names[..MAX_LISTED].join(", "), names.len() - MAX_LISTED),
    }
}

/// Lower case, without the marks people put between words.
fn fold(name: &str) -> Vec<char> {
    name.chars()
        .filter(|c| !matches!(c, '_' | '-' | ' ' | '.'))
        .flat_map(char::to_lowercase)
        .take(64)
        .collect()
}

/// How many letters must be put in, taken out, replaced or swapped with a neighbour.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut older: Vec<usize> = vec![0; b.len() + 1];
    let mut previous: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = previous[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(previous[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(older[j - 2] + 1);
            }
        }
        older = std::mem::replace(&mut previous, row);
    }
    previous[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&str; 11] = [
        "cpu",
        "memory",
        "shm",
        "disk",
        "gpu",
        "pids",
        "instances",
        "image",
        "min_succeeded",
        "env",
        "ports",
    ];

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        for (name, expected) in [
            ("memmory", Some("memory")),
            ("memroy", Some("memory")),
            ("instnaces", Some("instances")),
            ("instance", Some("instances")),
            ("minSucceeded", Some("min_succeeded")),
            ("min-succeeded", Some("min_succeeded")),
            ("MEMORY", Some("memory")),
            ("gpus", Some("gpu")),
            ("cpus", Some("cpu")),
            ("port", Some("ports")),
            ("mem", Some("memory")),
            ("Env", Some("env")),
            ("volumes", None),
            ("x", None),
            ("", None),
            ("memory", None),
        ] {
            assert_eq!(nearest(name, KEYS), expected, "{name:?}");
        }
    }

    #[test]
    fn one_name_may_begin_alike() {
        assert_eq!(similar("prepare", ["preprocess", "train"]), Some("preprocess"));
        assert_eq!(similar("corpora", ["corpus", "vocab"]), Some("corpus"));
        assert_eq!(similar("prepare", ["preprocess", "prepack"]), None);
        assert_eq!(similar("pre", ["preprocess"]), None);
    }

    #[test]
    fn lists_are_cut() {
        assert_eq!(list([]), "none");
        assert_eq!(list(["a"]), "`a`");
        assert_eq!(list(["a", "b", "c"]), "`a`, `b` and `c`");
        let many: Vec<String> = (0..20).map(|n| n.to_string()).collect();
        let text = list(many.iter().map(String::as_str));
        assert!(text.ends_with("`11` and 8 more"), "{text}");
    }
}
