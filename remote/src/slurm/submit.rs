//! Submits a run: its directory is made, its Slurm jobs are submitted, and then they are let start.

use jobc_schema::plan::CODE_ARCHIVE;
use jobc_schema::target::image_file_name;
use jobc_sys::error::{Error, Kind};

use super::access::Access;
use super::login::{NewJob, NewRun, Submit, Submitted, Upload};
use super::record::RunRecord;
use super::{files, problems};
use crate::built::BatchScript;
use crate::host::{Host, SendFile};
use crate::place::{Problem, Submission, SubmitError};

/// Creates or completes a run.
pub(crate) fn submit(access: &Access, submission: &Submission<'_>) -> Result<(), SubmitError> {
    let scripts = scripts(submission)?;
    let name = submission.built.plan.name.as_str();
    let run = new_run(access, submission)?;
    let program = access.program_of(scripts)?;
    let job = |script: &BatchScript| NewJob {
        group: script.group.clone(),
        after: script.after.clone(),
        role: script.direct_role().map(str::to_owned),
    };
    let question = || Submit {
        program: program.clone(),
        plan: submission.identity.label().to_owned(),
        cwd: working_directory(),
        run: run.clone(),
        jobs: scripts.iter().map(job).collect(),
    };
    match access.ask_with_program(&format!("submit job `{name}`"), question)? {
        Submitted::Done => Ok(()),
        Submitted::Refused { group, words } => Err(SubmitError::Refused(refused(scripts, &group, &words))),
        Submitted::Taken => Err(SubmitError::Refused(vec![
            Problem::error(format!("job `{name}` exists already, and is not this job"))
                .help("submit again with `--new`"),
        ])),
    }
}

/// The scripts of a submission.
pub(crate) fn scripts<'a>(submission: &'a Submission<'_>) -> Result<&'a [BatchScript], Error> {
    match &submission.built.scripts[..] {
        [] => Err(Error::new(Kind::Config, "the built directory has no batch scripts")
            .help("add `slurm` to `backends` of the target")),
        scripts => Ok(scripts),
    }
}

/// The files of a run.
pub(crate) fn new_run(access: &Access, submission: &Submission<'_>) -> Result<NewRun, SubmitError> {
    let mut run = NewRun { name: submission.built.plan.name.clone(), ..NewRun::default() };
    let directory = access.directory()?;
    for file in &submission.built.files {
        let path = format!("target/{}", file.path);
        // It may be the same as that of other runs, and large.
        if file.path.ends_with(CODE_ARCHIVE) && !matches!(access.host, Host::Local) {
            let code = SendFile::bytes(file.bytes.clone());
            let kept = files::send_file(&access.host, directory, &code)?;
            run.link(&path, &format!("../../../../{kept}"));
        } else {
            run.file(&path, file.mode, &file.bytes);
        }
    }
    if !submission.secrets.values.is_empty() {
        run.files.push(("secrets".to_owned(), Upload::Directory(0o700)));
        for (secret, value) in &submission.secrets.values {
            run.file(&format!("secrets/{secret}"), 0o600, value.bytes());
        }
        // Where a script that `sbatch` is given by hand has them.
        run.link("target.slurm/secrets", "../secrets");
    }
    let images = &submission.built.plan.images;
    for image in submission.images {
        if images.values().any(|own| own.reference == image.reference) {
            let place = access.send_image(image)?;
            let link = format!("target/slurm/images/{}", image_file_name(&image.reference));
            run.link(&link, &format!("../../../../../{place}"));
        }
    }
    if matches!(access.host, Host::Local) {
        run.link("files", &submission.directory.to_string_lossy());
    } else {
        let contents = access.contents(&submission.built.plan, submission.directory)?;
        contents.add(&mut run, &access.host, directory, submission)?;
    }
    run.record = serde_json::to_string(&RunRecord::of(submission))
        .map_err(|error| Error::new(Kind::System, format!("cannot write the record of the job: {error}")))?;
    Ok(run)
}

/// The current directory, which `image: {host: {cwd: true}}` uses.
pub(crate) fn working_directory() -> String {
    std::env::current_dir().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The problems of words of `sbatch` about the script of a group.
pub(crate) fn refused(scripts: &[BatchScript], group: &str, words: &str) -> Vec<Problem> {
    let script = scripts.iter().find(|script| script.group == group).unwrap_or(&scripts[0]);
    vec![problems::of_sbatch(words, "", script)]
}
