//! Submits a run: one script on the host makes its directory, submits its Slurm jobs, and lets them start.

use jobc_schema::plan::CODE_ARCHIVE;
use jobc_schema::target::image_file_name;
use jobc_sys::error::{Error, Kind};

use super::access::Access;
use super::record::RunRecord;
use super::upload::Archive;
use super::{files, problems, shell};
use crate::built::BatchScript;
use crate::host::{Host, Output, SendFile};
use crate::place::{Problem, Submission, SubmitError};

const SUBMIT: &str = include_str!("submit.sh");
/// The exit code when `sbatch` refuses a script.
const REFUSED: i32 = 43;
/// The exit code when the program of the jobs is not there yet.
const NO_PROGRAM: i32 = 47;
/// The exit code when the name is that of another run.
const TAKEN: i32 = 44;

/// Creates or completes a run.
pub(crate) fn submit(access: &Access, submission: &Submission<'_>) -> Result<(), SubmitError> {
    let scripts = scripts(submission)?;
    let name = submission.built.plan.name.as_str();
    let mut archive = Archive::default();
    add(&mut archive, access, submission)?;
    let directory = working_directory();
    let after: Vec<String> = scripts.iter().map(|script| script.after.join(",")).collect();
    let program = access.program_of(scripts)?;
    let mut words = vec![program.as_str(), name, submission.identity.label(), &directory];
    for (script, after) in scripts.iter().zip(&after) {
        words.extend([script.group.as_str(), after, script.direct_role().unwrap_or_default()]);
    }
    let output = run(access, SUBMIT, &words, &archive.finish())?;
    match output.status {
        REFUSED => Err(SubmitError::Refused(refused(scripts, &output.text()))),
        TAKEN => Err(SubmitError::Refused(vec![Problem {
            is_warning: false,
            message: format!("job `{name}` exists already, and is not this job"),
            place: None,
            help: Some("submit again with `--new`".to_owned()),
        }])),
        _ => Ok(shell::check(&format!("submit job `{name}`"), &output)?),
    }
}

/// Runs a script that submits; its first word is the program of the jobs, which is put there if it is missing.
pub(crate) fn run(access: &Access, script: &str, words: &[&str], archive: &[u8]) -> Result<Output, Error> {
    let output = shell::run(access, script, words, Some(archive))?;
    if output.status != NO_PROGRAM {
        return Ok(output);
    }
    access.install(words[0])?;
    shell::run(access, script, words, Some(archive))
}

/// The scripts of a submission.
pub(crate) fn scripts<'a>(submission: &'a Submission<'_>) -> Result<&'a [BatchScript], Error> {
    match &submission.built.scripts[..] {
        [] => Err(Error::new(Kind::Config, "the built directory has no batch scripts")
            .help("add `slurm` to `backends` of the target")),
        scripts => Ok(scripts),
    }
}

/// Adds the files of a run, of which the record is the last.
pub(crate) fn add(
    archive: &mut Archive,
    access: &Access,
    submission: &Submission<'_>,
) -> Result<(), SubmitError> {
    let name = &submission.built.plan.name;
    for file in &submission.built.files {
        let path = format!("{name}/target/{}", file.path);
        // It may be the same as that of other runs, and large.
        if file.path.ends_with(CODE_ARCHIVE) && !matches!(access.host, Host::Local) {
            let code = SendFile::bytes(file.bytes.clone());
            let kept = files::send_file(&access.host, access.directory.as_deref(), &code)?;
            archive.link(&path, &format!("../../../../{kept}"));
        } else {
            archive.file(&path, file.mode, &file.bytes);
        }
    }
    if !submission.secrets.values.is_empty() {
        archive.directory(&format!("{name}/secrets"), 0o700);
        for (secret, value) in &submission.secrets.values {
            archive.file(&format!("{name}/secrets/{secret}"), 0o600, value.bytes());
        }
        // Where `submit.sh` puts them.
        archive.link(&format!("{name}/target.slurm/secrets"), "../secrets");
    }
    let images = &submission.built.plan.images;
    for image in submission.images {
        if images.values().any(|own| own.reference == image.reference) {
            let place = access.send_image(image)?;
            let link = format!("{name}/target/slurm/images/{}", image_file_name(&image.reference));
            archive.link(&link, &format!("../../../../../{place}"));
        }
    }
    if matches!(access.host, Host::Local) {
        archive.link(&format!("{name}/files"), &submission.directory.to_string_lossy());
    } else {
        let contents = access.contents(&submission.built.plan, submission.directory)?;
        contents.add(archive, &access.host, access.directory.as_deref(), submission)?;
    }
    let record = serde_json::to_string(&RunRecord::of(submission))
        .map_err(|error| Error::new(Kind::System, format!("cannot write the record of the job: {error}")))?;
    archive.file(&format!("{name}/job.new"), 0o644, format!("{record}\n").as_bytes());
    Ok(())
}

/// The current directory, which `image: {host: {cwd: true}}` uses.
pub(crate) fn working_directory() -> String {
    std::env::current_dir().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The problems of an answer `refused GROUP` with the words of `sbatch` after it.
pub(crate) fn refused(scripts: &[BatchScript], text: &str) -> Vec<Problem> {
    let (first, message) = text.split_once('\n').unwrap_or((text, ""));
    let group = first.trim_start_matches("refused").trim();
    let script = scripts.iter().find(|script| script.group == group).unwrap_or(&scripts[0]);
    vec![problems::of_sbatch(message, script)]
}
