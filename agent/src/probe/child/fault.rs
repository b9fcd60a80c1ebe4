//! What an NVML error means: for one value, for a GPU, for the whole library. Pure; used by `child` and `device`.
//!
//! Codes without a variant in nvml-wrapper arrive as `UnexpectedVariant(code)` and are taken by number.

use nvml_wrapper::error::NvmlError;

use crate::observation::GpuState;
use crate::probe::protocol::{InitFailure, InitFailureKind};

/// What a failed call on a GPU says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// This GPU or driver never gives this value.
    Unsupported,
    /// Not now.
    Transient,
    /// Not to us.
    Denied,
    /// No such GPU.
    Nothing,
    /// The list did not fit.
    TooSmall,
    /// The GPU itself.
    Device(GpuState),
}

/// Sorts an error of a call on a GPU.
#[must_use]
pub fn of_call(error: &NvmlError) -> Fault {
    match error {
        NvmlError::NotSupported
        | NvmlError::FailedToLoadSymbol(_)
        | NvmlError::FunctionNotFound
        // ARGUMENT_VERSION_MISMATCH and DEPRECATED.
        | NvmlError::UnexpectedVariant(25 | 26) => Fault::Unsupported,
        NvmlError::NoPermission => Fault::Denied,
        NvmlError::InsufficientSize(_) => Fault::TooSmall,
        // GPU_NOT_FOUND, or an index beyond the end after a GPU went.
        NvmlError::UnexpectedVariant(28) | NvmlError::InvalidArg | NvmlError::NotFound => Fault::Nothing,
        NvmlError::GpuLost => Fault::Device(GpuState::Lost),
        NvmlError::ResetRequired => Fault::Device(GpuState::ResetRequired),
        NvmlError::InsufficientPower | NvmlError::IrqIssue => Fault::Device(GpuState::Faulty),
        _ => Fault::Transient,
    }
}

/// Says why NVML could not be used.
#[must_use]
pub fn init_failure(error: &NvmlError) -> InitFailure {
    let kind = match error {
        NvmlError::LibloadingError(_) | NvmlError::LibraryNotFound => InitFailureKind::NoLibrary,
        NvmlError::DriverNotLoaded | NvmlError::UnexpectedVariant(28) => InitFailureKind::NoDriver,
        NvmlError::LibRmVersionMismatch => InitFailureKind::Mismatch,
        other => InitFailureKind::Code(code(other)),
    };
    let mut message = match error {
        NvmlError::LibloadingError(error) => error.to_string(),
        error => error.to_string(),
    };
    if matches!(kind, InitFailureKind::Code(999)) {
        message.push_str("; often the service may not open /dev/nvidia* (DeviceAllow)");
    }
    message.truncate(400);
    InitFailure { kind, message }
}

fn code(error: &NvmlError) -> u32 {
    match error {
        NvmlError::UnexpectedVariant(code) => *code,
        NvmlError::NoPermission => 4,
        NvmlError::InsufficientPower => 8,
        NvmlError::IrqIssue => 11,
        NvmlError::GpuLost => 15,
        NvmlError::ResetRequired => 16,
        NvmlError::OperatingSystem => 17,
        NvmlError::InsufficientMemory => 20,
        _ => 999,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_sorted_by_its_number() {
        let table = [
            (3, Fault::Unsupported),
            (4, Fault::Denied),
            (6, Fault::Nothing),
            (7, Fault::TooSmall),
            (8, Fault::Device(GpuState::Faulty)),
            (10, Fault::Transient),
            (11, Fault::Device(GpuState::Faulty)),
            (13, Fault::Unsupported),
            (14, Fault::Transient),
            (15, Fault::Device(GpuState::Lost)),
            (16, Fault::Device(GpuState::ResetRequired)),
            (19, Fault::Transient),
            (25, Fault::Unsupported),
            (26, Fault::Unsupported),
            (27, Fault::Transient),
            (28, Fault::Nothing),
            (999, Fault::Transient),
        ];
        for (code, fault) in table {
            assert_eq!(of_call(&NvmlError::from(code)), fault, "code {code}");
        }
    }

    #[test]
    fn init_failures_are_told_apart() {
        let kind = |code: u32| init_failure(&NvmlError::from(code)).kind;
        assert_eq!(kind(9), InitFailureKind::NoDriver);
        assert_eq!(kind(12), InitFailureKind::NoLibrary);
        assert_eq!(kind(18), InitFailureKind::Mismatch);
        assert_eq!(kind(28), InitFailureKind::NoDriver);
        assert_eq!(kind(17), InitFailureKind::Code(17));
        assert_eq!(kind(29), InitFailureKind::Code(29));
        assert_eq!(kind(999), InitFailureKind::Code(999));
    }

    #[test]
    fn ag_29_code_999_names_device_access() {
        let failure = init_failure(&NvmlError::Unknown);
        assert!(
            failure.message.contains("/dev/nvidia"),
            "{}",
            failure.message
        );
    }
}
