//! What may be wrong with cards: errors that the driver reports, counters of errors, reduced clocks.

use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::enum_wrappers::device::{EccCounter, MemoryError};
use nvml_wrapper::enums::device::SampleValue;
use nvml_wrapper::enums::event::XidError;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::event::EventSet;
use nvml_wrapper::structs::device::FieldId;
use nvml_wrapper::sys_exports::field_id;
use nvml_wrapper::{Device, Nvml};

use crate::report::CardHealth;

/// More events are read with the next sample.
const MAX_EVENTS: usize = 16;

/// The number of a card that has fallen off the bus.
const LOST: u64 = 79;

/// Errors of all links of a card. Each is an error on a line that was sent again or a link that was trained again.
const LINK_ERRORS: [u32; 4] = [
    field_id::NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL,
    field_id::NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL,
    field_id::NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL,
    field_id::NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL,
];

/// Reasons for reduced clocks that are not a part of normal work, the most precise first.
const SLOWDOWNS: [(ThrottleReasons, &str); 4] = [
    (ThrottleReasons::HW_THERMAL_SLOWDOWN, "it is too hot (hardware)"),
    (ThrottleReasons::SW_THERMAL_SLOWDOWN, "it is too hot"),
    (ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN, "its power supply asks for it (power brake)"),
    (ThrottleReasons::HW_SLOWDOWN, "hardware slowdown"),
];

/// The cards of a host, whose errors NVML collects from now on.
pub(crate) struct Watched<'nvml> {
    cards: Vec<(u32, String, Option<EventSet<'nvml>>)>,
}

impl<'nvml> Watched<'nvml> {
    /// Registers for the errors of all cards.
    pub(crate) fn begin(nvml: &'nvml Nvml) -> Self {
        let cards = (0..nvml.device_count().unwrap_or(0)).filter_map(|index| {
            let device = nvml.device_by_index(index).ok()?;
            Some((index, device.uuid().ok()?, events_of(nvml, &device)))
        });
        Self { cards: cards.collect() }
    }

    /// The state of each card, and its errors since the last call.
    pub(crate) fn sample(&self, nvml: &Nvml) -> Vec<(String, CardHealth)> {
        self.cards
            .iter()
            .map(|(index, uuid, events)| (uuid.clone(), health(nvml, *index, events.as_ref())))
            .collect()
    }
}

/// Not all cards and not all users get events.
fn events_of<'nvml>(nvml: &'nvml Nvml, device: &Device<'nvml>) -> Option<EventSet<'nvml>> {
    let wanted = EventTypes::CRITICAL_XID_ERROR | EventTypes::DOUBLE_BIT_ECC_ERROR;
    let types = device.supported_event_types().ok()? & wanted;
    (!types.is_empty()).then_some(())?;
    device.register_events(types, nvml.create_event_set().ok()?).ok()
}

fn health(nvml: &Nvml, index: u32, events: Option<&EventSet<'_>>) -> CardHealth {
    let mut health = CardHealth { index, ..CardHealth::default() };
    for _ in 0..MAX_EVENTS {
        match events.map(|events| events.wait(0)) {
            Some(Ok(event)) => {
                // The counter below has the errors of the memory.
                if let Some(XidError::Value(number)) = event.event_data {
                    health.xids.push(number);
                }
            }
            Some(Err(NvmlError::GpuLost)) => {
                health.xids.push(LOST);
                break;
            }
            _ => break,
        }
    }
    let Ok(device) = nvml.device_by_index(index) else { return health };
    health.ecc_errors = device.total_ecc_errors(MemoryError::Uncorrected, EccCounter::Volatile).ok();
    health.nvlink_errors = link_errors(&device);
    health.slowdown = device.current_throttle_reasons().ok().and_then(|reasons| {
        let known = SLOWDOWNS.iter().find(|(reason, _)| reasons.contains(*reason));
        known.map(|(_, text)| (*text).to_owned())
    });
    health.power = device.power_usage().ok();
    health.power_limit = device.enforced_power_limit().ok();
    health
}

fn link_errors(device: &Device<'_>) -> Option<u64> {
    let fields = device.field_values_for(&LINK_ERRORS.map(FieldId)).ok()?;
    let values = fields.into_iter().filter_map(|field| match field.ok()?.value.ok()? {
        SampleValue::U32(value) => Some(u64::from(value)),
        SampleValue::U64(value) => Some(value),
        SampleValue::I64(value) => u64::try_from(value).ok(),
        SampleValue::F64(_) => None,
    });
    values.reduce(u64::saturating_add)
}
