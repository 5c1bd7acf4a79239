//! Plans of containers whose limits are those of groups that others made.

use super::super::inherited::{InheritedLimits, Rounding};
use super::super::layout::Layout;
use super::super::limit::Limits;
use super::super::request::CgroupRequest;
use super::super::unenforced::UnenforcedLimit;
use super::{Plan, accept_unenforced, device_rules_error};
use jobc_sys::error::{Error, Kind, Result};

impl Plan {
    /// Plans a container without its own group: its limits are those of this process's group.
    ///
    /// Limits that are weaker than requested are in [`Self::unenforced`]. Batch systems count memory in MiB and CPUs in
    /// cores, so a limit that is rounded up to the next unit counts as enforced.
    ///
    /// # Errors
    ///
    /// An invalid limit; unless that is allowed, device rules that a container without its own group could evade.
    pub(crate) fn inherited(layout: &Layout, request: &CgroupRequest<'_>) -> Result<Self> {
        let mut plan = Self { groups: vec![], unenforced: vec![], lacks_group: false };
        let Some(resources) = request.resources else { return Ok(plan) };
        let limits = Limits::of(resources, layout)?;
        let pointers = limits.writable.into_iter().map(|limit| limit.pointer);
        let unsupported =
            limits.unsupported.into_iter().filter_map(|error| error.pointer().map(str::to_owned));
        let inherited = InheritedLimits::read(layout);
        for place in pointers.chain(unsupported) {
            if let Some(reason) = inherited.weakness(&place, resources, Rounding::Site) {
                plan.unenforced.push(UnenforcedLimit { place, reason });
            }
        }
        let devices = device_rules_error(request, &"the container has no cgroup of its own");
        plan.unenforced.extend(accept_unenforced(devices.into_iter().collect(), request)?);
        Ok(plan)
    }

    /// Plans groups of which some limits cannot be enforced, as long as these hold for this process anyway.
    ///
    /// # Errors
    ///
    /// `refused`, or the error of the first limit that does not hold.
    pub(crate) fn within_inherited(
        layout: &Layout,
        request: &CgroupRequest<'_>,
        refused: Error,
    ) -> Result<Self> {
        let Some(resources) = request.resources else { return Err(refused) };
        let mut plan = Self::of(layout, &CgroupRequest { allow_unenforced: true, ..*request })?;
        InheritedLimits::read(layout).remove_enforced(resources, &mut plan.unenforced);
        match plan.unenforced.first() {
            None => Ok(plan),
            Some(first) if refused.pointer() == Some(&first.place) => Err(refused),
            Some(UnenforcedLimit { place, reason }) => {
                let error = Error::new(Kind::Unenforceable, reason.clone()).at(place);
                Err(Error { hints: refused.hints, ..error })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use oci_spec::runtime::LinuxResources;
    use serde_json::json;

    use super::*;
    use crate::cgroup::controller::Controller;
    use crate::cgroup::layout::UnifiedHierarchy;

    #[test]
    fn a_container_without_a_group_lists_what_is_not_kept() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("job/step")).unwrap();
        std::fs::write(root.path().join("job/memory.max"), "1073741824\n").unwrap();
        let unified = UnifiedHierarchy {
            mount: root.path().to_owned(),
            controllers: vec![Controller::Memory, Controller::Pids].into(),
            own_group: Some("job/step".into()),
            writable: true,
        };
        let layout = Layout { hierarchies: vec![], unified: Some(unified) };
        let resources: LinuxResources =
            serde_json::from_value(json!({"memory": {"limit": 1 << 30}, "pids": {"limit": 5}})).unwrap();
        let request = CgroupRequest {
            id: "demo",
            resources: Some(&resources),
            user_namespace: true,
            ..CgroupRequest::default()
        };
        let made = Plan::inherited(&layout, &request).unwrap();
        assert_eq!((made.groups.len(), made.unenforced.len()), (0, 1));
        assert_eq!(made.unenforced[0].place, "/linux/resources/pids/limit");
        // Outside a user namespace a container could make any device's node.
        let error =
            Plan::inherited(&layout, &CgroupRequest { user_namespace: false, ..request }).unwrap_err();
        assert_eq!((error.kind, error.pointer()), (Kind::Unenforceable, Some("/linux/resources/devices")));
    }
}
