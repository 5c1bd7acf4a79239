//! The providers of GPUs: each row of the table has a case under `tests/providers/`, with what a job of it becomes that
//! the same job without GPUs does not, and what the compiler says.
//!
//! A case is named after its provider; `@` and a word tell further cases of the same provider apart.
#![forbid(unsafe_code)]

use std::fs;

use jobc_compiler::diagnostic::Severity;
use jobc_compiler::emit::to_yaml;
use jobc_compiler::stdlib::providers::{self, PodField, PodRequirements, RequestForm, ResourceRequest, Unit};
use jobc_tests::clusters::{ClusterCase, Manifest, manifests, pods};
use jobc_tests::difference::{difference, shorten_pods};
use jobc_tests::workspace;

fn cases() -> Vec<ClusterCase> {
    ClusterCase::all("providers")
}

fn provider(case: &ClusterCase) -> &str {
    case.name.split_once('@').map_or(&case.name, |(provider, _)| provider)
}

#[test]
fn every_provider_of_the_table_has_a_case() {
    let cases = cases();
    let mut bare: Vec<&str> = providers::all().iter().map(|provider| provider.name.as_str()).collect();
    bare.retain(|name| !cases.iter().any(|case| provider(case) == *name));
    assert!(bare.is_empty(), "without a case under tests/providers/: {}", bare.join(", "));
    for case in &cases {
        assert!(
            providers::find(provider(case)).is_some(),
            "{}: no row of the table has that name",
            case.name
        );
    }
}

/// A row without support is refused with its reason; every other becomes manifests, without an error.
#[test]
fn a_provider_adds_what_its_snapshot_shows() {
    for case in cases() {
        let compiled = case.compile();
        let row = providers::find(provider(&case)).expect("a case has its row");
        let errors = compiled.count(Severity::Error);
        match &row.unserved {
            Some(why) => {
                assert!(compiled.text().contains(why.as_str()), "{}\n{}", case.name, compiled.text());
            }
            None => assert_eq!(errors, 0, "{}\n{}", case.name, compiled.text()),
        }
        let made = if errors == 0 { manifests(&compiled) } else { vec![] };
        assert_eq!(made.is_empty(), row.unserved.is_some(), "{} makes {} manifests", case.name, made.len());
        let plain = manifests(&case.compile_plain(false));
        assert!(!plain.is_empty(), "{} without GPUs is refused", case.name);
        let added = made.iter().filter_map(|manifest| added(manifest, &plain));
        case.check(&compiled, &added.collect::<Vec<_>>());
    }
}

/// What of a manifest is not in that of the same name among others; of a pod in one of another name what is not in that of
/// the same role. The numbers before the names are the order.
fn added((path, value): &Manifest, plain: &[Manifest]) -> Option<Manifest> {
    let name = |path: &str| path.trim_start_matches(|c: char| c.is_ascii_digit()).to_owned();
    let value = if let Some((_, base)) = plain.iter().find(|(other, _)| name(other) == name(path)) {
        difference(value, base)?
    } else {
        let (pods, mut value) = (pods(plain), value.clone());
        shorten_pods(&mut value, &|role| pods.get(role).cloned());
        value
    };
    Some((path.clone(), value))
}

/// What the row says is in the manifests: each key of it that has no hole, in each way that the case asks for.
#[test]
fn the_keys_of_a_row_are_in_its_manifests() {
    for row in providers::all().iter().filter(|row| row.unserved.is_none()) {
        let of_row = cases().into_iter().filter(|case| provider(case) == row.name);
        let all: String =
            of_row.flat_map(|case| manifests(&case.compile())).map(|(_, value)| to_yaml(&value)).collect();
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
