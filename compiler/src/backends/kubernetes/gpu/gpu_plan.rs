//! Which roles ask for GPUs.

use jobc_schema::plan::{GpuPlan, RolePlan};

/// The GPUs a role asks for; nothing where it asks for none.
pub(crate) fn gpu_plan(role: &RolePlan) -> Option<&GpuPlan> {
    role.resources.gpu.as_ref().filter(|gpu| gpu.count > 0)
}
