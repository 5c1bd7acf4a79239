//! Scratch.
use jobc_runtime::{
    bundle::Bundle,
    cgroup::*,
    container::Options,
    prepare::{ControlGroups, prepare},
    root::Root,
    start::Groups,
};
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
    let id = format!("t{}", std::process::id());
    let mut options = Options { id: id.clone(), end_with_parent: true, ..Options::default() };
    let linux = bundle.config.spec.linux().clone().unwrap();
    let request = Request {
        id: &id,
        path: linux.cgroups_path().as_ref().and_then(|p| p.to_str()),
        resources: linux.resources().as_ref(),
        allow_unenforced: true,
        owner: None,
        user_namespace: uid != 0,
    };
    let layout = Layout::detect().unwrap();
    let plan = Plan::of(&layout, &request).unwrap();
    let prepared = prepare(
        &bundle,
        &root,
        &mut options,
        &jobc_runtime::machine::Machine::look().unwrap(),
        Some(&ControlGroups { layout: &layout, plan: &plan }),
    )
    .unwrap_or_else(|e| {
        eprintln!("{e}");
        std::process::exit(125)
    });
    if std::env::args().nth(2).is_some() {
        for l in plan.describe() {
            println!("{l}");
        }
        for s in &prepared.steps {
            println!("{}", s.operation);
        }
        return;
    }
    let (mut cgroup, unenforced) = plan.carry_out(&request).unwrap();
    for u in unenforced {
        eprintln!("unenforced {u}");
    }
    let (born_in, joined) = cgroup.take_entrances();
    let code = match prepared.spawn(Groups { born_in, joined }, &mut |_| Ok(())) {
        Err(e) => {
            eprintln!("error: {e}\nhelp: {:?}", e.help);
            e.exit_code()
        }
        Ok(p) => p.wait().unwrap().code(),
    };
    cgroup.remove().unwrap();
    std::process::exit(code.into());
}
