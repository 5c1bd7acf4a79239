//! A small place: a directory with a directory for each job, in which `state` and `log` are files. What it does not write
//! is refused by the traits, and what is written works as at every place: sweeps by the names of jobs, for one.

use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use jobc_place::Place;
use jobc_place::event::{Event, EventOutput};
use jobc_place::job::{JobDetail, JobProgress, JobSummary};
use jobc_place::logs::{LogItem, LogOutput, LogRequest};
use jobc_place::state::JobState;
use jobc_place::stop::StopRequest;
use jobc_place::task::{TaskState, TaskStatus};
use jobc_sys::error::{AtPath as _, Error, Kind, Result, file_error};

struct Spool(PathBuf);

impl Spool {
    fn read(&self, name: &str, file: &str) -> Result<String> {
        let path = self.0.join(name).join(file);
        fs::read_to_string(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Error::new(Kind::NotFound, format!("no such job: `{name}`")),
            _ => file_error("read", &path, &error),
        })
    }
}

impl Place for Spool {
    fn list(&self) -> Result<Vec<JobSummary>> {
        let entries = fs::read_dir(&self.0).at_path("read", &self.0)?;
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names.iter().map(|name| self.find(name)).collect()
    }

    fn find(&self, name: &str) -> Result<JobSummary> {
        let state = match self.read(name, "state")?.trim() {
            "running" => JobState::Running,
            "done" => JobState::Succeeded,
            _ => JobState::Stopped,
        };
        Ok(JobSummary::new(name, name, state))
    }

    fn wait(&self, name: &str, progress: JobProgress<'_>) -> Result<Option<JobSummary>> {
        loop {
            let job = self.find(name)?;
            if progress(&job).is_break() {
                return Ok(None);
            }
            if job.state.is_final() {
                return Ok(Some(job));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn reasons(&self, name: &str) -> Result<Vec<String>> {
        Ok(self.inspect(name)?.reasons)
    }

    fn stop(&self, name: &str, _: StopRequest<'_>) -> Result<Option<JobSummary>> {
        let path = self.0.join(name).join("state");
        fs::write(&path, "stopped").at_path("write", &path)?;
        self.find(name).map(Some)
    }

    fn delete(&self, name: &str) -> Result<()> {
        let path = self.0.join(name);
        fs::remove_dir_all(&path).at_path("remove", &path)
    }

    fn inspect(&self, name: &str) -> Result<JobDetail> {
        let job = self.find(name)?;
        let state = if job.state.is_final() { TaskState::Succeeded } else { TaskState::Running };
        Ok(JobDetail::new(job, vec![TaskStatus::new("main-0".parse().unwrap(), state, 1)]))
    }

    fn events(&self, _: &str) -> Result<Vec<Event>> {
        Ok(vec![])
    }

    fn follow_events(&self, name: &str, _: EventOutput<'_>) -> Result<()> {
        self.wait(name, &mut |_| ControlFlow::Continue(())).map(drop)
    }

    fn logs(&self, name: &str, _: &LogRequest, output: LogOutput<'_>) -> Result<()> {
        for line in self.read(name, "log")?.lines() {
            if output(LogItem::line("main-0", 1, "", line.as_bytes())).is_break() {
                break;
            }
        }
        Ok(())
    }
}

#[test]
fn a_place_is_what_its_files_say() {
    let directory = std::env::temp_dir().join(format!("jobc-spool-{}", std::process::id()));
    for (name, state) in [("one", "done"), ("grid-0", "done"), ("grid-1", "running")] {
        fs::create_dir_all(directory.join(name)).unwrap();
        fs::write(directory.join(name).join("state"), state).unwrap();
        fs::write(directory.join(name).join("log"), format!("{name} says\nhello\n")).unwrap();
    }
    let place: Box<dyn Place> = Box::new(Spool(directory.clone()));
    let sweep = place.members("grid").unwrap();
    let names: Vec<&str> = sweep.jobs().iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["grid-0", "grid-1"], "a sweep is the jobs with its name and a number");
    assert_eq!(place.members("none").unwrap_err().kind, Kind::NotFound);
    let mut lines = vec![];
    let mut keep = |item: LogItem<'_>| {
        if let LogItem::Line { task, line } = item {
            lines.push(format!("{task}: {}", String::from_utf8_lossy(line.text)));
        }
        ControlFlow::Continue(())
    };
    place.logs("one", &LogRequest::default(), &mut keep).unwrap();
    assert_eq!(lines, ["main-0: one says", "main-0: hello"]);
    let refused = place.hold("grid-1", true).unwrap_err();
    assert_eq!(
        (refused.kind, refused.message().as_str()),
        (Kind::Unsupported, "this place cannot hold jobs back")
    );
    assert_eq!(place.usage("grid-1").unwrap_err().message(), "this place cannot measure tasks");
    let ended = place.stop("grid-1", StopRequest::default()).unwrap().unwrap();
    assert_eq!((ended.state, ended.exit_code()), (JobState::Stopped, 130));
    assert_eq!(place.inspect("grid-1").unwrap().tasks[0].task.to_string(), "main-0");
    place.delete("grid-1").unwrap();
    assert_eq!(place.list().unwrap().len(), 2);
    fs::remove_dir_all(directory).unwrap();
}
