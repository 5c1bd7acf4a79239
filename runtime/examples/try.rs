//! Scratch.
use jobc_runtime::{bundle::Bundle, container::Options, prepare::prepare, root::Root, start::Groups};
fn main() {
    let dir = std::path::PathBuf::from(std::env::args().nth(1).unwrap());
    let mut bundle = Bundle::open(&dir).unwrap();
    let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    if uid != 0 {
        for l in jobc_runtime::rootless::adapt(&mut bundle.config.spec, uid, gid).unwrap() {
            println!("{l}");
        }
    }
    let root = Root::Folder(bundle.dir.join("rootfs"));
    let mut options = Options { end_with_parent: true, without_cgroup: true, ..Options::default() };
    let prepared = prepare(&bundle, &root, &mut options, &jobc_runtime::machine::Machine::look().unwrap(), None).unwrap_or_else(|e| {
        eprintln!("{e}");
        std::process::exit(125)
    });
    if std::env::args().nth(2).is_some() {
        for s in &prepared.steps {
            println!("{}", s.operation);
        }
        return;
    }
    match prepared.spawn(Groups::default(), &mut |_| Ok(())) {
        Err(e) => {
            eprintln!("error: {e}\nhelp: {:?}", e.help);
            std::process::exit(e.exit_code().into())
        }
        Ok(p) => std::process::exit(p.wait().unwrap().code().into()),
    }
}
