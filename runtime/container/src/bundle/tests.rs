use std::fs;

use super::*;

/// A directory with files, and the result of opening it (or a file in it).
fn check(files: &[(&str, &str)], open: &str) -> String {
    let directory = tempfile::tempdir().expect("a directory");
    for (path, text) in files {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(path, text).expect("a file");
    }
    let dir = fs::canonicalize(directory.path()).expect("a path");
    let output = match Bundle::open(&dir.join(open)) {
        Ok(bundle) => format!("{} {:?}", bundle.dir.display(), bundle.annotation("dev.jobc.image")),
        Err(error) => {
            error.to_string()
                + &error.hints.iter().map(|help| format!("\n  help: {help}")).collect::<String>()
        }
    };
    let names: Vec<_> = files.iter().map(|(path, _)| *path).collect();
    format!("{} of {names:?}\n{}\n\n", open, output.replace(&dir.display().to_string(), "DIR"))
}

#[test]
fn invalid_bundles_are_reported() {
    let config = r#"{"annotations": {"dev.jobc.image": "host"}}"#;
    let cases = [
        check(&[("config.json", config)], "."),
        check(&[("config.json", config)], "config.json"),
        check(&[("config.json", "{")], "."),
        check(&[("config.json/x", "")], "."),
        check(&[], "missing"),
        check(&[], "."),
        check(&[("job.yaml", "")], "job.yaml"),
        check(&[("job.yaml", "")], "."),
        check(&[("plan.json", ""), ("oci/main-0/config.json", "")], "."),
        check(&[("plan.json", "")], "."),
        check(&[("config.json", &" ".repeat(17 << 20))], "."),
    ];
    insta::assert_snapshot!(cases.concat());
}
