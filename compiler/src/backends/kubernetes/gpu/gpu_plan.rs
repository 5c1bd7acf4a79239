//! Which roles request GPUs.

use jobc_schema::plan::{GpuPlan, RolePlan};

/// The GPUs that a role requests; `None` if it requests none.
pub(crate) fn gpu_plan(role: &RolePlan) -> Option<&GpuPlan> {
    role.resources.gpu.as_ref().filter(|gpu| gpu.count > 0)
}
