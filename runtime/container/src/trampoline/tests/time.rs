//! Measurements, run with `--ignored --nocapture`.

use super::*;

/// How long a trampoline takes to make and how large it is.
#[test]
#[ignore = "a measurement"]
fn time_to_build() {
    let (_reader, report) = pipe();
    let filter = all_but(SECCOMP_RET_ALLOW, &(0..600).collect::<Vec<_>>());
    let candidates =
        strings(&["/usr/local/sbin/train", "/usr/local/bin/train", "/usr/bin/train", "/bin/train"]);
    for filter in [None, Some(&filter)] {
        let mut times: Vec<Duration> = (0..2_000)
            .map(|_| {
                let started = Instant::now();
                build(&candidates, filter, None, report.as_raw_fd(), None, ProgramProcess::Same)
                    .expect("built");
                started.elapsed()
            })
            .collect();
        times.sort();
        let size =
            image::build_image(code::bytes(), &candidates, filter, None, 5, None, ProgramProcess::Same).len();
        println!("{size} bytes: median {:?}, 95 % {:?}", times[1_000], times[1_900]);
    }
}

/// What the second `execve` costs a start, both ways in turn.
#[test]
#[ignore = "a measurement"]
fn time_to_pass() {
    let (_reader, report) = pipe();
    let candidates = strings(&["/bin/true"]);
    let case = Case { candidates: &["/bin/true"], arguments: &["true"], ..Case::default() };
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..500 {
        let trampoline =
            build(&candidates, None, None, report.as_raw_fd(), None, ProgramProcess::Same).expect("built");
        let started = Instant::now();
        spawn(&case, &trampoline, &report, None);
        with.push(started.elapsed());
        let program = std::fs::File::open("/bin/true").expect("there").into();
        let started = Instant::now();
        spawn(&case, &program, &report, None);
        without.push(started.elapsed());
    }
    with.sort();
    without.sort();
    println!("median with {:?}, without {:?}", with[250], without[250]);
}
