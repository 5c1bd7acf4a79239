//! The providers of GPUs: each row of the table has a case under `tests/providers/`, with what it becomes and what is
//! said.
//!
//! A case is a directory named after the provider, with `@` and a word behind it for another case of the same; it holds
//! a job, its targets, the manifests in `out/`, and in `says` the findings, a line each.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::compile::Output;
use jobc_compiler::diagnostic::Severity;
use jobc_compiler::stdlib::providers::{self, PodField, PodRequirements, RequestForm, ResourceRequest, Unit};
use jobc_tests::compile::{Compilation, compile_directory};
use jobc_tests::{entries, workspace};

fn cases() -> Vec<Utf8PathBuf> {
    entries(&workspace().join("tests/providers"))
}

fn provider(case: &Utf8Path) -> &str {
    let name = case.file_name().expect("a directory has a name");
    name.split_once('@').map_or(name, |(provider, _)| provider)
}

/// The manifests, as they lie below `out/`.
fn manifests(compiled: &Compilation) -> BTreeMap<Utf8PathBuf, String> {
    let place = |output: &Output| Utf8Path::new(&output.job.name).join(&output.job.target.name);
    let all =
        compiled.outputs.iter().flat_map(|o| o.artifacts.iter().map(move |a| (place(o).join(&a.path), a)));
    all.filter(|(path, _)| path.extension() == Some("yaml"))
        .map(|(path, artifact)| {
            (path, String::from_utf8(artifact.bytes.clone()).expect("a manifest is text"))
        })
        .collect()
}

fn committed(directory: &Utf8Path) -> BTreeMap<Utf8PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut todo = vec![directory.to_owned()];
    while let Some(next) = todo.pop() {
        for path in if next.is_dir() { entries(&next) } else { vec![] } {
            if path.is_dir() {
                todo.push(path);
            } else {
                let text = fs::read_to_string(&path).expect("a committed manifest is text");
                found.insert(path.strip_prefix(directory).expect("it lies below").to_owned(), text);
            }
        }
    }
    found
}

#[test]
fn every_provider_of_the_table_has_a_case() {
    let cases = cases();
    let mut bare: Vec<&str> = providers::all().iter().map(|provider| provider.name.as_str()).collect();
    bare.retain(|name| !cases.iter().any(|case| provider(case) == *name));
    assert!(bare.is_empty(), "without a case under tests/providers/: {}", bare.join(", "));
    for case in &cases {
        assert!(providers::find(provider(case)).is_some(), "{case}: no row of the table has that name");
    }
}

/// A row that nothing is written for is refused with its reason; every other becomes manifests, without an error.
#[test]
fn what_each_becomes_is_committed() {
    let update = std::env::var_os("JOBC_UPDATE").is_some_and(|value| value == "1");
    let mut differ = Vec::new();
    for case in cases() {
        let compiled = compile_directory(&case.join("job.yaml"));
        let row = providers::find(provider(&case)).expect("a case has its row");
        let errors = compiled.count(Severity::Error);
        match &row.unserved {
            Some(why) => assert!(compiled.text().contains(why.as_str()), "{case}\n{}", compiled.text()),
            None => assert_eq!(errors, 0, "{case}\n{}", compiled.text()),
        }
        let (made, output) = (manifests(&compiled), compiled.short());
        assert_eq!(made.is_empty(), row.unserved.is_some(), "{case} makes {} manifests", made.len());
        let (out, says) = (case.join("out"), case.join("says"));
        let before = fs::read_to_string(&says).unwrap_or_default();
        if made == committed(&out) && output == before {
            continue;
        }
        differ.push(case.clone());
        if update {
            if out.exists() {
                fs::remove_dir_all(&out).expect("what was made can be removed");
            }
            for (path, text) in &made {
                let path = out.join(path);
                fs::create_dir_all(path.parent().expect("a directory")).expect("the directory can be made");
                fs::write(&path, text).expect("the manifest can be written");
            }
            if output.is_empty() {
                fs::remove_file(&says).ok()
            } else {
                fs::write(&says, &output).ok()
            };
        }
    }
    let list: Vec<&str> = differ.iter().map(|case| case.as_str()).collect();
    assert!(
        update || list.is_empty(),
        "JOBC_UPDATE=1 writes them again, then read the change:\n{}",
        list.join("\n")
    );
}

/// What the row says is in the manifests: each key of it that has no hole, in each way that the case asks for.
#[test]
fn the_keys_of_a_row_are_in_its_manifests() {
    for row in providers::all().iter().filter(|row| row.unserved.is_none()) {
        let of_row = cases().into_iter().filter(|case| provider(case) == row.name);
        let all: String = of_row.flat_map(|case| committed(&case.join("out")).into_values()).collect();
        let ways = [&row.whole, &row.share, &row.profile].into_iter().flatten();
        let keys = ways.flat_map(|way| &way.asks).map(|ask| ask.key.as_str());
        let pod = row.pod.iter();
        let selectors = pod.clone().flat_map(|pod| pod.node_selector.keys().chain(pod.labels.keys()));
        let words =
            keys.chain(selectors.map(String::as_str)).chain(pod.filter_map(|pod| pod.scheduler.as_deref()));
        for word in words {
            let plain = word.split(['{', '}']).max_by_key(|part| part.len()).unwrap_or(word);
            let requested = ["resource", "queue"].iter().all(|hole| plain != *hole);
            assert!(!requested || all.contains(plain), "{}: `{plain}` is in none of its manifests", row.name);
        }
    }
}

/// Where the providers stand in `docs/reference/gpu-providers.md`.
const BEGIN: &str = "<!-- providers: made from";
const END: &str = "<!-- providers: end -->";

#[test]
fn the_page_has_every_provider() {
    let path = workspace().join("docs/reference/gpu-providers.md");
    let page = fs::read_to_string(&path).expect("the page is there");
    let begin =
        page.find(BEGIN).and_then(|at| Some(at + page[at..].find('\n')? + 1)).expect("the table's beginning");
    let end = page.find(END).expect("the table's end");
    let made = format!("{}{}{}", &page[..begin], sections(), &page[end..]);
    if std::env::var_os("JOBC_UPDATE").is_some_and(|value| value == "1") {
        fs::write(&path, made).expect("the page can be written");
    } else {
        assert!(page == made, "JOBC_UPDATE=1 writes the providers of docs/reference/gpu-providers.md again");
    }
}

/// The providers, a section each, in lines of at most 120 columns; what a provider has not is left out.
fn sections() -> String {
    let mut made = String::new();
    for row in providers::all() {
        let names: Vec<String> =
            std::iter::once(&row.name).chain(&row.aliases).map(|name| format!("`{name}`")).collect();
        made += &format!("\n### {}\n\n{}", names.join(", "), wrapped(&format!("{}.", row.about), ""));
        if let Some(why) = &row.unserved {
            made += &format!("\n{}", wrapped(&format!("Not supported: {why}."), ""));
            continue;
        }
        let cell = |ways: &[&Option<RequestForm>]| {
            let all: Vec<String> =
                ways.iter().filter_map(|way| Some(asks(way.as_ref()?, row.claim.is_some()))).collect();
            all.join("; ")
        };
        let mut kept: Vec<&str> = [&row.share, &row.profile]
            .into_iter()
            .flatten()
            .filter_map(|way| Some(way.enforce?.words()))
            .collect();
        kept.dedup();
        let mut besides: Vec<String> = row.pod.iter().flat_map(companions).collect();
        besides.extend(
            row.settings.iter().map(|name| format!("the target's `{}`", name.replace("node_selector.", ""))),
        );
        let items = [
            ("Whole GPUs", cell(&[&row.whole])),
            ("Slices", cell(&[&row.share, &row.profile])),
            ("Enforced by", kept.join("; ")),
            ("Also", besides.join(", ")),
        ];
        made += "\n";
        for (name, value) in items.iter().filter(|(_, value)| !value.is_empty()) {
            made += &wrapped(&format!("- {name}: {value}"), "  ");
        }
    }
    made + "\n"
}

/// Text in lines of at most 120 columns, each ended; those after the first begin with `indent`.
fn wrapped(text: &str, indent: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("there is a line");
        if last.is_empty() {
            last.push_str(word);
        } else if last.chars().count() + 1 + word.chars().count() <= 120 {
            *last += &format!(" {word}");
        } else {
            lines.push(format!("{indent}{word}"));
        }
    }
    lines.join("\n") + "\n"
}

fn asks(way: &RequestForm, claimed: bool) -> String {
    if claimed {
        return if way.shared_claim { "a claim that the role shares" } else { "a claim" }.to_owned();
    }
    way.asks.iter().map(ask).collect::<Vec<_>>().join(", ")
}

fn ask(ask: &ResourceRequest) -> String {
    let place = match ask.place {
        PodField::Limits | PodField::Both => "",
        PodField::Labels => "label ",
        PodField::Annotations => "annotation ",
        PodField::Env | PodField::Field => "env ",
    };
    let unit = match ask.unit {
        Some(Unit::B) => "bytes",
        Some(Unit::MiB) => "MiB",
        Some(Unit::Blocks) => "256 MiB",
        Some(Unit::GB) => "GB",
        Some(Unit::GiB | Unit::GiBUnlessSet) => "GiB",
        Some(Unit::Factor) => "MiB by `memory_factor`",
        Some(Unit::Setting) => "by `memory_unit`",
        None => "",
    };
    let amount = match ask.amount.as_str() {
        "{memory}" => unit.to_owned(),
        "{cores}" => ask.step.map_or("%".to_owned(), |step| format!("%, in steps of {step}")),
        "{count}" if unit.is_empty() => String::new(),
        "{count}" => format!("of {unit}"),
        "{count}.0" | "{fraction}" => "as a decimal".to_owned(),
        "{percent}" => "100 a GPU".to_owned(),
        other => format!("= `{other}`"),
    };
    format!("{place}`{}` {amount}", ask.key).trim_end().to_owned()
}

fn companions(pod: &PodRequirements) -> Vec<String> {
    let mut all = vec![];
    all.extend(pod.scheduler.iter().map(|name| format!("`schedulerName: {name}`")));
    if pod.host_ipc {
        all.push("`hostIPC`".to_owned());
    }
    all.extend(pod.run_as_user.iter().map(|user| format!("`runAsUser: {user}`")));
    all.extend(pod.linux_capabilities.iter().map(|name| format!("capability `{name}`")));
    all.extend(pod.labels.iter().map(|(key, value)| format!("label `{key}: {value}`")));
    all.extend(pod.annotations.iter().map(|(key, value)| format!("annotation `{key}: {value}`")));
    all.extend(pod.node_selector.iter().map(|(key, value)| format!("nodes with `{key}: {value}`")));
    all.extend(pod.tolerations.iter().filter_map(|taint| Some(format!("tolerates `{}`", taint.get("key")?))));
    all
}
