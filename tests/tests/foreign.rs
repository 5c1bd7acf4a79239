//! Files of other tools: each sample is converted, nothing of it vanishes, and what comes out is a job in canonical form.
//!
//! Public files are read where the corpus lies beside the repository.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fmt::Write as _;

use camino::Utf8Path;
use jobc_compiler::diagnostic::render::{Format as Rendered, TextStyle, render};
use jobc_compiler::diagnostic::{Severity, Sink};
use jobc_compiler::format::format;
use jobc_compiler::import::Selection;
use jobc_compiler::rewrite::{RewriteResult, rewrite};
use jobc_compiler::source::{Source, Sources};
use jobc_tests::compile::{Arguments, Case};
use jobc_tests::disk::DiskFiles;
use jobc_tests::sections::section;
use jobc_tests::{entries, workspace};

/// What became of a file.
struct Imported {
    /// The job file; `None` for one that is refused.
    job: Option<String>,
    /// The targets file.
    targets: Option<String>,
    /// The findings, one a line.
    findings: String,
    /// The rows of the account: line, text, outcome, and what it becomes.
    rows: Vec<(u32, String, String, String)>,
}

fn import(path: &Utf8Path, text: &str) -> Imported {
    let mut sources = Sources::new();
    let id = sources.add(Source::new(path.file_name().unwrap_or_default(), text));
    let mut sink = Sink::new();
    let files = DiskFiles(path.parent().expect("a directory").to_owned());
    let (result, account) = rewrite(&mut sources, id, &files, &Selection::default(), &mut sink);
    let findings = sink.finish();
    let is_refused = findings.iter().any(|found| found.severity == Severity::Error);
    assert_eq!(
        matches!(result, RewriteResult::Refused),
        is_refused,
        "{path}: refused without a reason, or not refused"
    );
    let row = |line: jobc_compiler::import::Line<'_>| {
        (line.line, line.source.to_owned(), line.outcome.to_owned(), line.becomes.to_owned())
    };
    let rows = account.lines(&sources).into_iter().map(row).collect();
    let findings = render(Rendered::Short, &sources, &findings, &TextStyle::default());
    match result {
        RewriteResult::Job(job, targets) => Imported { job: Some(job), targets, findings, rows },
        _ => Imported { job: None, targets: None, findings, rows },
    }
}

fn samples(format: &str) -> Vec<camino::Utf8PathBuf> {
    let all: Vec<_> = entries(&workspace().join("tests/foreign").join(format))
        .into_iter()
        .filter(|path| path.extension() != Some("snap"))
        .collect();
    assert!(all.len() > 2, "only {} samples of {format}", all.len());
    all
}

fn read(path: &Utf8Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The job file of each sample, with its findings and its account.
#[test]
fn samples_are_converted() {
    for format in ["sbatch", "docker-run", "compose", "small"] {
        for path in samples(format) {
            let imported = import(&path, &read(&path));
            let mut snapshot = section("job.yaml", imported.job.as_deref().unwrap_or("refused\n"));
            snapshot += &imported.targets.map(|text| section("targets.yaml", &text)).unwrap_or_default();
            snapshot += &section("findings", &imported.findings);
            let mut account = String::new();
            for (line, source, outcome, becomes) in &imported.rows {
                let _ = writeln!(account, "{line}: {} -> {outcome}: {becomes}", source.replace('\n', " "));
            }
            snapshot += &section("account", &account);
            let mut settings = insta::Settings::clone_current();
            settings.set_snapshot_path(workspace().join("tests/foreign").join(format));
            settings.set_prepend_module_to_snapshot(false);
            settings.set_omit_expression(true);
            settings.bind(|| insta::assert_snapshot!(path.file_stem().unwrap(), snapshot));
        }
    }
}

/// A Compose project of several files, read as each way of starting it reads them: with the override file beside it, with
/// the named files alone, and with a profile. What is named relative to a file is relative to the project's directory here.
#[test]
fn files_of_a_project_are_read_together() {
    let directory = workspace().join("tests/foreign/project");
    for (name, others, profiles, only_named) in
        [("override", &[][..], &[][..], false), ("named", &["compose.gpu.yaml"], &["debug"], true)]
    {
        let mut sources = Sources::new();
        let mut add = |name: &str| sources.add(Source::new(name, read(&directory.join(name))));
        let main = add("compose.yaml");
        let files = others.iter().map(|name| add(name)).collect();
        let profiles = profiles.iter().map(|name: &&str| (*name).to_owned()).collect();
        let selection = Selection { files, profiles, only_named, ..Selection::default() };
        let mut sink = Sink::new();
        let (result, account) =
            rewrite(&mut sources, main, &DiskFiles(directory.clone()), &selection, &mut sink);
        let findings = render(Rendered::Short, &sources, &sink.finish(), &TextStyle::default());
        let RewriteResult::Job(job, _) = result else { panic!("{name} is refused:\n{findings}") };
        assert_eq!(format(&job).as_deref(), Some(job.as_str()), "`jobc fmt` changes it");
        let mut text = section("job.yaml", &job) + &section("findings", &findings) + "==== account\n";
        for line in account.lines(&sources) {
            let file = line.file.unwrap_or("compose.yaml");
            let source = line.source.replace('\n', " ");
            let _ = writeln!(text, "{file}:{}: {source} -> {}: {}", line.line, line.outcome, line.becomes);
        }
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(&directory);
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!(name, text));
    }
}

/// `jobc fmt` changes nothing of a job file that was written, and it compiles without errors, as the sample itself does.
#[test]
fn what_is_written_is_canonical_and_sound() {
    for format_name in ["sbatch", "docker-run", "compose", "small"] {
        for path in samples(format_name) {
            let text = read(&path);
            let job = import(&path, &text).job.unwrap_or_else(|| panic!("{path} is refused"));
            assert_eq!(format(&job).as_deref(), Some(job.as_str()), "{path}: `jobc fmt` changes it");
            for (name, text) in [("job.yaml", job.as_str()), (path.file_name().unwrap(), text.as_str())] {
                let files = DiskFiles(path.parent().unwrap().to_owned());
                let mut arguments = Arguments { targets: vec!["local".to_owned()], ..Arguments::default() };
                let variables = [
                    ("API_TOKEN", "t"),
                    ("EPOCHS", "3"),
                    ("HF_HOME", "/hf"),
                    ("HOME", "/root"),
                    ("IMAGE", "busybox:1.37"),
                ];
                arguments.environment =
                    BTreeMap::from(variables.map(|(name, value)| (name.to_owned(), value.to_owned())));
                let job = Source::new(name, text);
                let compiled =
                    Case { job, targets: None, params: vec![], arguments, files: &files }.compile();
                let errors: Vec<_> = compiled
                    .findings
                    .iter()
                    .filter(|found| {
                        // What this host has not, and MPI between containers with one address.
                        found.severity == Severity::Error
                            && !["J0219", "J0401", "J0540"].contains(&found.code.as_str())
                    })
                    .collect();
                assert!(errors.is_empty(), "{path} as {name}: {errors:#?}");
            }
        }
    }
}

/// Every option of `#SBATCH` has a row in the account, counted here by a rule of its own.
#[test]
fn no_directive_vanishes() {
    let mut counted = 0;
    for path in samples("sbatch") {
        let text = read(&path);
        let imported = import(&path, &text);
        for (number, line) in text.lines().enumerate() {
            let Some(rest) = line.strip_prefix("#SBATCH ") else { continue };
            let options = rest.split(" #").next().unwrap_or_default().split_whitespace();
            let options = options.filter(|word| word.starts_with('-') && word.len() > 1).count();
            let rows = imported.rows.iter().filter(|(at, ..)| *at as usize == number + 1).count();
            assert!(rows >= options, "{path}:{}: {options} options, {rows} in the account", number + 1);
            counted += options;
        }
    }
    assert!(counted > 25, "only {counted} options");
}

/// Variables of the caller come before the options of a script, where they are asked for; each has a row.
#[test]
fn variables_of_sbatch_take_precedence() {
    let script = "#!/bin/bash\n#SBATCH -t 5 --mem=2G\n#SBATCH -p cpu\nsrun ./x\n";
    let variables = "SBATCH_ACCOUNT=proj\nSBATCH_PARTITION=gpu\nSBATCH_TIMELIMIT=30\n";
    let mut sources = Sources::new();
    let id = sources.add(Source::new("x.sbatch", script));
    let environment = sources.add(Source::new("<environment>", variables));
    let job = |environment: Option<_>, sources: &mut Sources| {
        let selection = Selection { environment, ..Selection::default() };
        let files = DiskFiles(workspace());
        let (result, account) = rewrite(sources, id, &files, &selection, &mut Sink::new());
        let RewriteResult::Job(job, targets) = result else { panic!("refused") };
        (job, targets.unwrap_or_default(), account)
    };
    let (plain, ..) = job(None, &mut sources);
    assert!(plain.contains("timeout: 5m"), "{plain}");
    let (job, targets, account) = job(Some(environment), &mut sources);
    assert!(job.contains("timeout: 30m") && job.contains("memory: 2GiB"), "{job}");
    assert!(targets.contains("account: proj") && targets.contains("partition: gpu"), "{targets}");
    let rows = account.lines(&sources);
    let of = |file: Option<&str>| rows.iter().filter(|row| row.file == file).count();
    assert_eq!(of(Some("<environment>")), 3, "{rows:#?}");
    assert!(
        rows.iter().any(|row| row.becomes.contains("`SBATCH_PARTITION` of the environment")),
        "{rows:#?}"
    );
}

/// Every key of a service has a row at its line, or below it.
#[test]
fn no_key_of_a_service_vanishes() {
    let mut counted = 0;
    for path in samples("compose").into_iter().chain(corpus("compose")) {
        let text = read(&path);
        let imported = import(&path, &text);
        if imported.rows.is_empty() {
            continue;
        }
        let lines: Vec<&str> = text.lines().collect();
        let Some(services) = lines.iter().position(|line| line.starts_with("services:")) else { continue };
        let indent = |line: &str| line.len() - line.trim_start().len();
        let is_key = |line: &str| {
            !line.trim().is_empty() && !line.trim().starts_with(['#', '-']) && line.contains(':')
        };
        let end = lines
            .iter()
            .skip(services + 1)
            .position(|line| is_key(line) && indent(line) == 0)
            .map_or(lines.len(), |at| services + 1 + at);
        let body = &lines[services + 1..end];
        let Some(first) = body.iter().find(|line| is_key(line)).map(|line| indent(line)) else { continue };
        let Some(level) =
            body.iter().filter(|line| is_key(line)).map(|line| indent(line)).find(|at| *at > first)
        else {
            continue;
        };
        // The services that are left out have one row each.
        let mut is_left = false;
        for (at, line) in body.iter().enumerate() {
            let number = u32::try_from(services + at + 2).unwrap();
            if is_key(line) && indent(line) == first {
                is_left =
                    imported.rows.iter().any(|(row, _, outcome, _)| *row == number && outcome == "note");
            }
            if is_left
                || !is_key(line)
                || indent(line) != level
                || line.trim().starts_with("<<")
                || line.contains(": *")
            {
                // What an alias stands for has its rows at the anchor.
                continue;
            }
            let next = body[at + 1..]
                .iter()
                .position(|line| is_key(line) && indent(line) <= level)
                .map_or(body.len(), |next| at + 1 + next);
            let last = u32::try_from(services + next + 1).unwrap();
            let has = imported.rows.iter().any(|(row, ..)| (number..=last.max(number)).contains(row));
            assert!(has, "{path}:{number}: `{}` is not in the account", line.trim());
            counted += 1;
        }
    }
    assert!(counted > 20, "only {counted} keys");
}

fn corpus(name: &str) -> Vec<camino::Utf8PathBuf> {
    let corpus = workspace().join("../shared/corpus").join(name);
    if !corpus.is_dir() {
        eprintln!("foreign: the corpus of {name} is absent; samples of the project's own");
        return vec![];
    }
    entries(&corpus).into_iter().filter(|path| matches!(path.extension(), Some("yaml" | "yml"))).collect()
}

/// Files of the corpus that change another one: each with the file before it.
const READ_TOGETHER: [(&str, &str); 7] = [
    ("av__harbor__services__compose.x.llamacpp.nvidia.yml", "compose.llamacpp.yml"),
    ("av__harbor__services__compose.x.ollama.nvidia.yml", "compose.ollama.yml"),
    ("av__harbor__services__compose.x.ollama.rocm.yml", "compose.ollama.yml"),
    ("av__harbor__services__compose.x.photoprism.nvidia.yml", "compose.photoprism.yml"),
    ("coleam00__local-ai-packaged__docker-compose.override.private.yml", "docker-compose.yml"),
    (
        "kubernetes__kompose__script__test__fixtures__unused__merge-multiple-compose__service-merge-concat-override.yml",
        "service-merge-concat-base.yml",
    ),
    (
        "xorbitsai__inference__xinference__deploy__docker__docker-compose.airgap.yml",
        "docker-compose-distributed.yml",
    ),
];

/// The files of a repository, whose paths are names in the corpus.
struct CorpusFiles(camino::Utf8PathBuf, String);

impl CorpusFiles {
    fn of(path: &Utf8Path) -> Self {
        let name = path.file_name().expect("a name");
        let directory = name.rfind("__").map_or("", |at| &name[..at + 2]);
        Self(path.parent().expect("a directory").to_owned(), directory.to_owned())
    }

    fn path(&self, path: &Utf8Path) -> camino::Utf8PathBuf {
        self.0.join(format!("{}{}", self.1, path.as_str().trim_start_matches("./").replace('/', "__")))
    }
}

impl jobc_compiler::files::Files for CorpusFiles {
    fn read(&self, path: &Utf8Path) -> std::io::Result<Vec<u8>> {
        std::fs::read(self.path(path))
    }

    fn exists(&self, path: &Utf8Path) -> bool {
        self.path(path).exists()
    }
}

/// Most public Compose files are converted; each of the others has an error at a place of it. Most files that they name are
/// not in the corpus.
#[test]
fn public_compose_files_are_converted() {
    let files = corpus("compose");
    let mut refused = String::new();
    let mut converted = 0;
    for path in &files {
        let files = CorpusFiles::of(path);
        let base = READ_TOGETHER.iter().find(|(name, _)| path.file_name() == Some(name));
        let mut sources = Sources::new();
        let main = base.map_or(path.clone(), |(_, base)| files.path(Utf8Path::new(base)));
        let id = sources.add(Source::new(main.file_name().unwrap_or_default(), read(&main)));
        let others = base.map(|_| sources.add(Source::new(path.file_name().unwrap_or_default(), read(path))));
        let selection = Selection {
            files: others.into_iter().collect(),
            only_named: true,
            is_sketch: true,
            ..Selection::default()
        };
        let mut sink = Sink::new();
        let (result, _) = rewrite(&mut sources, id, &files, &selection, &mut sink);
        let findings = render(Rendered::Short, &sources, &sink.finish(), &TextStyle::default());
        if let RewriteResult::Job(job, _) = result {
            converted += 1;
            assert_eq!(format(&job).as_deref(), Some(job.as_str()), "{path}: `jobc fmt` changes it");
        } else {
            let errors = findings.lines().filter(|line| line.contains("error["));
            refused += &errors.map(|line| format!("{line}\n")).collect::<String>();
        }
    }
    assert!(converted * 10 >= files.len() * 9, "{converted} of {} are converted:\n{refused}", files.len());
    eprintln!("{converted} of {} Compose files are converted; the others:\n{refused}", files.len());
}

/// Hostile texts: long, deep, with control characters, cut off anywhere.
#[test]
fn hostile_texts_are_refused_or_read() {
    let path = workspace().join("tests/foreign/sbatch/x.sbatch");
    let many = format!("#!/bin/bash\n{}srun x\n", "#SBATCH -c 1 -t 5 --comment=\"x\"\n".repeat(20_000));
    let deep = format!("#!/bin/bash\n#SBATCH -c 1\necho {}\n", "$(echo \"".repeat(20_000));
    let numbers = "#!/bin/bash\n#SBATCH -N 4294967295 --ntasks-per-node=4294967295 -c 4294967295 --mem-per-cpu=999999T\nsrun x\n";
    let words = format!("docker run {} image\n", "-e A=$B ".repeat(5_000));
    let braces = format!("docker run -e A={} i\n", "${A:-".repeat(20_000));
    for text in [
        many.as_str(),
        &deep,
        numbers,
        &words,
        &braces,
        "#!/bin/bash\n#SBATCH -J \"\n",
        "docker run",
        "docker run -",
        "#!/bin/bash\n#SBATCH \\",
    ] {
        let _ = import(&path, text);
    }
    for sample in ["sbatch", "docker-run", "compose", "small"].into_iter().flat_map(samples) {
        let text = read(&sample);
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            let _ = import(&sample, &text[..end]);
        }
        let _ = import(&sample, &text.replace('\n', "\r\n"));
        let _ = import(&sample, &text.replace(' ', "\u{3000}"));
    }
}
