use serde_json::json;

use super::*;
use crate::backend::{FilePart, Origin, PartSource};
use crate::backends::{find, fixture};

fn provenance(source: Option<SourceState>) -> Provenance {
    Provenance { version: "1.2.3".to_owned(), source, digests: BTreeMap::new() }
}

fn state() -> SourceState {
    SourceState {
        revision: "ab".repeat(20),
        is_dirty: Some(true),
        url: Some("https://git.example/team/jobs.git".to_owned()),
    }
}

/// The files of a backend with and without provenance, by path below the target's directory.
fn stamped(backend: BackendName, provenance: &Provenance) -> Vec<(String, String, String)> {
    let job = fixture::job(&json!({"target": {"settings": {"backends": ["oci", backend.as_str()]}}}));
    let (files, report) = fixture::lower(find(backend).unwrap(), &job);
    assert_eq!(report, "");
    let plain: Vec<String> = files.iter().map(text).collect();
    let mut outputs = [BackendOutput { backend, files }];
    provenance.stamp(&job, &mut outputs);
    let files = &outputs[0].files;
    let path = |file: &File| format!("{backend}/{}", file.path);
    files.iter().zip(plain).map(|(file, plain)| (path(file), text(file), plain)).collect()
}

fn text(file: &File) -> String {
    match &file.content {
        Content::Json(value) => emit::to_json(value),
        _ => fixture::text(file),
    }
}

#[test]
fn added_facts_can_be_removed() {
    for source in [None, Some(state())] {
        let provenance = provenance(source.clone());
        for backend in [BackendName::Kubernetes, BackendName::Oci, BackendName::Openpai, BackendName::Slurm] {
            let files = stamped(backend, &provenance);
            let marked = files.iter().filter(|(_, stamped, _)| stamped.contains("1.2.3")).count();
            assert!(marked > 0, "{backend} has no place");
            for (path, stamped, plain) in files {
                let again = without(Utf8Path::new(&path), stamped.as_bytes());
                assert_eq!(again.is_some(), stamped != plain, "{path}");
                assert_eq!(again.as_deref().unwrap_or(stamped.as_bytes()), plain.as_bytes(), "{path}");
                assert_eq!(without(Utf8Path::new(&path), plain.as_bytes()), None, "{path}");
                assert_eq!(
                    stamped.contains(&"ab".repeat(20)),
                    stamped != plain && source.is_some(),
                    "{path}"
                );
            }
        }
    }
}

#[test]
fn objects_are_labeled_with_the_digest_of_their_plan() {
    let files = stamped(BackendName::Kubernetes, &provenance(None));
    let job = fixture::job(&json!({"target": {"settings": {"backends": ["oci", "kubernetes"]}}}));
    let digest = job.digest();
    for (path, stamped, _) in files {
        assert!(
            stamped.contains(&format!("    jobc.dev/plan: {}\n", &digest.hex()[..32])),
            "{path}:\n{stamped}"
        );
        assert!(
            stamped.contains(&format!("    jobc.dev/plan-digest: sha256:{}\n", digest.hex())),
            "{path}:\n{stamped}"
        );
    }
}

#[test]
fn comments_are_after_the_options_of_a_script() {
    let mut text = "#!/bin/bash\n#SBATCH --mem=1M\n\necho '# jobc.dev/version: 1'\n".to_owned();
    let origin = |line| Origin { part: FilePart::Line(line), from: PartSource::Default("a test") };
    let mut origins = vec![origin(2), origin(4)];
    let (line, count) = fact_form::add_comments(&mut text, &[(VERSION, "1".to_owned())]);
    fact_form::shift(&mut origins, line, count);
    assert_eq!(
        text,
        "#!/bin/bash\n#SBATCH --mem=1M\n# jobc.dev/version: 1\n\necho '# jobc.dev/version: 1'\n"
    );
    assert_eq!(origins, [origin(2), origin(5)]);
    assert_eq!(
        fact_form::remove_comments(&text).as_deref(),
        Some("#!/bin/bash\n#SBATCH --mem=1M\n\necho '# jobc.dev/version: 1'\n")
    );
}

#[test]
fn a_submitted_job_has_the_digest_of_its_file() {
    let job = fixture::job(&json!({"name": "gpt-7f4k2"}));
    let digests = BTreeMap::from([("gpt-7f4k2".to_owned(), "cd".repeat(32))]);
    let facts = Provenance { digests, ..provenance(None) }.facts(&job);
    assert_eq!(facts[0], (DIGEST, format!("sha256:{}", "cd".repeat(32))));
}
