//! Several files: an open file takes precedence over the disk, and a change affects all jobs that read the file.

use super::Fixture;
use crate::dispatch;
use jobc_schema::BackendName;
use lsp_types::{TextDocumentContentChangeWholeDocument, Uri};

/// The findings that would be published for each file, as `code line:column`, after a change of one.
fn published(fixture: &mut Fixture, name: &str, text: &str) -> Vec<String> {
    let uri = Uri(format!("file:///w/{name}"));
    let whole = TextDocumentContentChangeWholeDocument { text: text.to_owned() };
    fixture.session.change(&uri, 2, vec![whole.into()]);
    lines(fixture)
}

fn lines(fixture: &mut Fixture) -> Vec<String> {
    let mut lines = vec![];
    for params in fixture.session.refresh() {
        let name = params.uri.0.trim_start_matches("file:///w/").to_owned();
        if params.diagnostics.is_empty() {
            lines.push(format!("{name}: nothing"));
        }
        for it in params.diagnostics {
            let Some(lsp_types::Code::String(code)) = it.code else { panic!("a code") };
            lines.push(format!("{name}: {code} {}:{}", it.range.start.line, it.range.start.character));
        }
    }
    fixture.session.settle();
    lines
}

const JOB: &str = "version: 1\nname: x\nimage: {from: \"python:3.12-slim\", python: {requirements: reqs.txt}}\nroles: {a: {run: x, resources: {cpu: 1, memory: 1GiB}}}\n";
const TARGETS: &str = "version: 1\ndefault: [lab]\ntargets:\n  lab: {backends: [oci]}\n";

#[test]
fn a_change_of_targets_checks_the_jobs_again() {
    let mut fixture =
        Fixture::new(&format!("==== job.yaml\n{JOB}==== targets.yaml\n{TARGETS}==== [reqs.txt]\na==1\n"));
    assert_eq!(lines(&mut fixture), Vec::<String>::new(), "shown already");
    let wrong = TARGETS.replace("[lab]", "[lap]");
    assert_eq!(published(&mut fixture, "targets.yaml", &wrong), ["targets.yaml: J0120 1:10"]);
    assert_eq!(published(&mut fixture, "targets.yaml", TARGETS), ["targets.yaml: nothing"]);
    // A job that requests what the target does not support gets the finding in its own file.
    let openpai = TARGETS.replace("oci", "openpai");
    let found = published(&mut fixture, "targets.yaml", &openpai);
    assert!(found.iter().any(|line| line.starts_with("job.yaml: J04")), "{found:?}");
}

#[test]
fn an_open_buffer_takes_precedence_over_the_file_on_disk() {
    let mut fixture = Fixture::new(&format!("==== job.yaml\n{JOB}==== reqs.txt\na==1\n"));
    let found = published(&mut fixture, "reqs.txt", "-r more.txt\n");
    let calm = published(&mut fixture, "reqs.txt", "a==1\n");
    let more: Vec<&String> = found.iter().filter(|line| !calm.contains(line)).collect();
    assert_eq!(more, ["job.yaml: J0451 2:57"], "the job reads the buffer");
    // After closing, the file on disk is used: it has no findings.
    fixture.session.close(&Uri("file:///w/reqs.txt".to_owned()));
    let found = lines(&mut fixture);
    assert!(found.iter().any(|line| line.starts_with("job.yaml: J0219")), "{found:?}");
}

#[test]
fn findings_of_two_jobs_in_one_targets_file_are_shown_once() {
    let wrong = TARGETS.replace("[lab]", "[lap]");
    let text = format!(
        "==== a.job.yaml\n{JOB}==== b.job.yaml\n{JOB}==== targets.yaml\n{TARGETS}==== [reqs.txt]\na==1\n"
    );
    let mut fixture = Fixture::new(&text);
    assert_eq!(published(&mut fixture, "targets.yaml", &wrong), ["targets.yaml: J0120 1:10"]);
    fixture.session.close(&Uri("file:///w/a.job.yaml".to_owned()));
    assert_eq!(lines(&mut fixture), Vec::<String>::new(), "the other job still says so");
}

#[test]
fn a_targets_file_that_is_not_open_shows_its_findings_until_they_are_gone() {
    let wrong = TARGETS.replace("[lab]", "[lap]");
    let text = format!("==== job.yaml\n{JOB}==== [targets.yaml]\n{wrong}==== [reqs.txt]\na==1\n");
    let mut fixture = Fixture::new(&text);
    let uri = Uri("file:///w/targets.yaml".to_owned());
    fixture.session.open(&uri, "yaml", 1, TARGETS.to_owned());
    assert_eq!(lines(&mut fixture), ["targets.yaml: nothing"]);
    fixture.session.close(&uri);
    assert_eq!(lines(&mut fixture), ["targets.yaml: J0120 1:10"], "the disk has the mistake still");
    fixture.session.close(&Uri("file:///w/job.yaml".to_owned()));
    assert_eq!(lines(&mut fixture), ["targets.yaml: nothing"]);
}

#[test]
fn unrelated_files_are_ignored() {
    let mut fixture = Fixture::new("==== deployment.yaml\napiVersion: apps/v1\nkind: Deployment\n");
    assert_eq!(lines(&mut fixture), Vec::<String>::new());
    assert!(fixture.session.tree(&fixture.uri).is_none());
    // It becomes a job while it is typed.
    let found = published(&mut fixture, "deployment.yaml", "version: 1\nname: x\nroles: {}\n");
    assert_eq!(found.len(), 1, "{found:?}");
}

#[test]
fn jobs_are_shown_for_the_selected_target() {
    let targets = "version: 1\ndefault: [lab]\ntargets:\n  lab: {description: the lab, backends: [oci]}\n  pai: {backends: [openpai]}\n";
    let mut fixture =
        Fixture::new(&format!("==== job.yaml\n{JOB}==== [targets.yaml]\n{targets}==== [reqs.txt]\na==1\n"));
    let shown = |fixture: &Fixture| {
        let params = serde_json::json!({"uri": fixture.uri});
        let Ok(found) = dispatch::answer(&fixture.session, "jobc/targets", params) else {
            panic!("an answer")
        };
        found
    };
    let mut choose = |target: &str| {
        fixture.session.show_target(target.to_owned());
        (lines(&mut fixture), shown(&fixture)["shown"].to_string())
    };
    let refused = vec!["job.yaml: J0401 2:0".to_owned()];
    assert_eq!(choose("pai"), (refused, r#"["pai"]"#.to_owned()));
    assert_eq!(choose("lab"), (vec!["job.yaml: nothing".to_owned()], r#"["lab"]"#.to_owned()));
    let (all, names) = choose("*");
    assert_eq!((all.len(), names), (1, r#"["lab","pai"]"#.to_owned()));
    // A job without such a target is shown as if nothing was selected.
    assert_eq!(choose("nowhere"), (vec!["job.yaml: nothing".to_owned()], r#"["lab"]"#.to_owned()));
    assert_eq!(
        shown(&fixture)["targets"][0],
        serde_json::json!({"name": "lab", "description": "the lab", "backends": ["oci"]})
    );
    // The view of another backend than the target's is the same as without a selection.
    fixture.session.show_target("pai".to_owned());
    let open = fixture.session.documents.get(&fixture.uri).expect("it is open");
    assert_eq!(fixture.session.choice(open, Some(BackendName::Oci)).targets, Vec::<String>::new());
}

#[test]
fn built_in_targets_can_be_selected() {
    let mut fixture = Fixture::new(JOB);
    let params = serde_json::json!({"uri": fixture.uri});
    let Ok(found) = dispatch::answer(&fixture.session, "jobc/targets", params) else { panic!("an answer") };
    assert_eq!(found["file"], serde_json::Value::Null);
    let names: Vec<&str> =
        found["targets"].as_array().expect("a list").iter().filter_map(|it| it["name"].as_str()).collect();
    assert_eq!(names, ["local", "kubernetes", "openpai"]);
    assert_eq!(found["shown"], serde_json::json!(["local"]));
    fixture.session.show_target("openpai".to_owned());
    assert!(fixture.session.is_stale(), "it is compiled again");
}

#[test]
fn a_comment_asks_for_findings_in_a_file_of_another_tool() {
    let mut fixture = Fixture::new("==== compose.yaml\nservices: {}\n==== train.sbatch\n#!/bin/bash\n");
    let files = [
        ("compose.yaml", "", "services:\n  a:\n    image: x:1\n    sysctls: {a: 1}\n", "J0632 4:4"),
        ("train.sbatch", "#!/bin/bash\n", "#SBATCH --wrap=x\nsrun ./x\n", "J0630 2:8"),
        ("train.sbatch", "#!/bin/bash\n", "#SBATCH -N 2\nsrun ./x $SLURM_STEP_ID\n", "J0632 3:9"),
    ];
    for (name, head, text, expected) in files {
        let found = published(&mut fixture, name, &format!("{head}{text}"));
        assert!(!found.iter().any(|line| line.contains(": J")), "{found:?}");
        let found = published(&mut fixture, name, &format!("{head}# jobc: check\n{text}"));
        assert!(found.contains(&format!("{name}: {expected}")), "{found:?}");
        // Nothing that a parser of YAML says of a script.
        assert!(found.iter().all(|line| !line.contains(": J00")), "{found:?}");
    }
}
