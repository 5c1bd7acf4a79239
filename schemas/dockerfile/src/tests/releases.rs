//! The releases of `docker/dockerfile` since 1.7: what each brought is read, or handed to another builder.
//!
//! The rows are those of the table in docs/reference/image-build.md.

use super::options;
use crate::{Inspection, Kind, Remote, Rule, Runs, Source, Variables, inspect};

/// The page with the table.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/image-build.md");

/// A release, a word of its row in the table, a file that uses it, and whether it is carried out here.
type Row = (&'static str, &'static str, &'static str, fn(&Inspection) -> bool);

const ROWS: &[Row] = &[
    ("1.7", "`${x#p}`", "FROM a\nENV X=a.tar.gz\nENV Y=${X%%.*}-${X#*.}-${X//a/b}\n", |file| {
        env(file, "a-tar.gz-b.tbr.gz")
    }),
    ("1.7", "`COPY --parents`", "FROM a\nCOPY --parents x/./y/*.txt /to/\n", |file| copy(file).parents),
    ("1.7", "`--exclude`", "FROM a\nADD --exclude=*.o --exclude=*.a src /to/\n", |file| {
        copy(file).exclude.len() == 2
    }),
    ("1.8", "`# check=`", "# check=skip=StageNameCasing;error=true\nFROM a AS B\n", |file| {
        remarks(file).is_empty()
    }),
    ("1.9", "SecretsUsedInArgOrEnv", "FROM a\nENV API_TOKEN=x\n", |file| {
        remarks(file) == ["SecretsUsedInArgOrEnv"]
    }),
    ("1.10", "`env=`", "FROM a\nRUN --mount=type=secret,id=k,env=KEY x\n", |file| {
        mounts(file).contains("env: Some(\"KEY\")")
    }),
    ("1.10", "`--chmod=$MODE`", "FROM a\nARG MODE=640\nCOPY --chmod=$MODE x /\n", |file| {
        mode(file, 0o777) == 0o640
    }),
    ("1.11", "`ONBUILD COPY --from`", "FROM a\nONBUILD COPY --from=b /x /y\n", is_whole),
    ("1.11", "`TARGETSTAGE`", "FROM a\nARG TARGETSTAGE\nENV Y=$TARGETSTAGE\n", |file| env(file, "default")),
    ("1.14", "`--chmod` in letters", "FROM a\nCOPY --chmod=u=rwX,go=rX x /\n", |file| {
        mode(file, 0o711) == 0o755
    }),
    ("1.14", "`RUN --device`", "FROM a\nRUN --device=nvidia.com/gpu x\n", is_handed_on),
    ("1.16", "blanks in `<< EOF`", "FROM a\nRUN <<  EOF\nx\nEOF\n", |file| script(file) == "x\n"),
    ("1.17", "`ADD --unpack`", "FROM a\nADD --unpack=true https://h/x.tar /\n", |file| {
        copy(file).unpack == Some(true)
    }),
    ("1.17", "`--checksum` of a commit", "FROM a\nADD --checksum=be1f38e https://h/r.git#v1 /\n", |file| {
        copy(file).checksum.is_some()
    }),
    (
        "1.18",
        "`?ref=…&subdir=…`",
        "FROM a\nADD https://h/r.git?ref=v1&subdir=d&submodules=false&keep-git-dir /\n",
        |file| {
            let Some(Ok(Remote::Repository(repository))) = Remote::parse(&source(file)) else { return false };
            repository.reference.as_deref() == Some("v1")
                && repository.subdirectory.as_deref() == Some("d")
                && !repository.submodules
                && repository.keep_git_dir == Some(true)
        },
    ),
    ("1.18", "ExposeInvalidFormat", "FROM a\nEXPOSE 80:8080\n", |file| {
        remarks(file) == ["ExposeInvalidFormat"]
    }),
    ("1.20", "`RUN --security=insecure`", "FROM a\nRUN --security=insecure x\n", is_handed_on),
    (
        "1.21",
        "above an instruction",
        "FROM a\n# check=skip=JSONArgsRecommended // a shell\nCMD x\n",
        |file| remarks(file).is_empty(),
    ),
    ("1.22", "`_FILE` and `_VERSION`", "FROM a\nENV TOKEN_FILE=x API_KEY_VERSION=1\n", |file| {
        remarks(file).is_empty()
    }),
    ("1.23", "`ARG SOURCE_DATE_EPOCH=0`", "ARG SOURCE_DATE_EPOCH=7\nFROM a\n", |file| {
        file.build.as_ref().and_then(|build| build.epoch) == Some(7)
    }),
    ("1.23", "`mtime=`", "FROM a\nADD https://h/r.git?mtime=commit /\n", is_whole),
    ("1.24", "`SOURCE_DATE_EPOCH=context`", "ARG SOURCE_DATE_EPOCH=context\nFROM a\n", is_handed_on),
    (
        "1.24",
        "`fetch-by-commit`",
        "FROM a\nADD https://h/r.git?fetch-by-commit&commit=1111111111111111111111111111111111111111#v1 /\n",
        |file| {
            let Some(Ok(Remote::Repository(repository))) = Remote::parse(&source(file)) else { return false };
            repository.commit() == Some("1".repeat(40).as_str())
        },
    ),
];

/// Each row of the table does what the table says, and the table has no others.
#[test]
#[allow(clippy::disallowed_methods, reason = "the page beside the crates is the test's input")]
fn releases_are_read_as_the_table_says() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let table: Vec<&str> = page.lines().filter(|line| line.starts_with("| 1.")).collect();
    for (release, word, text, holds) in ROWS {
        assert!(holds(&inspect(text.as_bytes(), &options(None))), "{release}: {word}");
        let rows =
            table.iter().filter(|row| row.starts_with(&format!("| {release} |")) && row.contains(word));
        let [row] = rows.collect::<Vec<_>>()[..] else {
            panic!("{release}: {word} is not in one row of the table")
        };
        let handed_on = row.ends_with("| handed to another builder |");
        assert_eq!(handed_on, std::ptr::fn_addr_eq(*holds, is_handed_on as fn(&Inspection) -> bool), "{row}");
    }
    assert_eq!(table.len(), ROWS.len());
}

/// No error, and nothing that another builder must do.
fn is_whole(file: &Inspection) -> bool {
    file.build.is_some()
}

/// Valid, but for another builder.
fn is_handed_on(file: &Inspection) -> bool {
    !file.refusals.is_empty() && file.refusals.iter().all(|refusal| refusal.rule == Rule::Unsupported)
}

fn remarks(file: &Inspection) -> Vec<&'static str> {
    assert!(is_whole(file), "{file:?}");
    file.remarks.iter().filter_map(|remark| Some(remark.rule.lint()?.name())).collect()
}

fn kinds(file: &Inspection) -> impl Iterator<Item = &Kind> {
    let build = file.build.as_ref().unwrap_or_else(|| panic!("{:?}", file.refusals));
    build.stages[0].instructions.iter().map(|instruction| &instruction.kind)
}

fn copy(file: &Inspection) -> &crate::Copy {
    let copies = kinds(file).filter_map(|kind| match kind {
        Kind::Copy(copy) | Kind::Add(copy) => Some(copy),
        _ => None,
    });
    copies.last().expect("a copy")
}

fn source(file: &Inspection) -> String {
    let [Source::Path(word)] = &copy(file).sources[..] else { panic!("{file:?}") };
    word.text.clone()
}

/// The bits of a file that had `bits`.
fn mode(file: &Inspection, bits: u32) -> u32 {
    let chmod = copy(file).chmod.as_ref().expect("a mode");
    variables(file).mode(chmod).expect("valid").apply(bits, false)
}

fn mounts(file: &Inspection) -> String {
    kinds(file).map(|kind| format!("{kind:?}")).collect()
}

fn script(file: &Inspection) -> String {
    let Some(Kind::Run(run)) = kinds(file).next() else { panic!("{file:?}") };
    let Runs::Shell(text) = &run.command else { panic!("{run:?}") };
    text.clone()
}

/// Whether the last `ENV` sets `Y` to a value.
fn env(file: &Inspection, value: &str) -> bool {
    let variables = variables(file);
    variables.env().get("Y").map(String::as_str) == Some(value)
}

/// The variables at the end of the stage.
fn variables(file: &Inspection) -> Variables<'_> {
    let build = file.build.as_ref().unwrap_or_else(|| panic!("{:?}", file.refusals));
    let mut variables = Variables::new(build, indexmap::IndexMap::new());
    for kind in kinds(file) {
        match kind {
            Kind::Arg(args) => variables.declare(args).expect("declared"),
            Kind::Env(pairs) => drop(variables.set(pairs).expect("set")),
            _ => {}
        }
    }
    variables
}
