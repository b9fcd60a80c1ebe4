//! Kinds of card: names, sizes and what each does not support. Read by `device`.
//!
//! Names and memory are as nvidia-smi prints them; powers and clocks are plausible, nothing depends on them.

use serde::Deserialize;

/// A kind of card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Pascal GP102.
    TitanX,
    /// Maxwell GM200.
    TitanXMaxwell,
    /// Kepler, one of the two GPUs of a board. Last driver branch: 470, which has no memory info v2.
    K80,
    /// Volta.
    V100,
    /// Ampere, 80 GB.
    A100,
    /// Hopper, 80 GB.
    H100,
}

/// Figures of a card.
#[derive(Debug, Clone, Copy)]
pub struct Figures {
    pub name: &'static str,
    pub memory_mib: u64,
    pub reserved_mib: u64,
    pub power_limit_mw: u64,
    pub idle_power_mw: u64,
    pub idle_clock_mhz: u64,
    pub busy_clock_mhz: u64,
    pub memory_clock_mhz: u64,
}

impl Profile {
    /// Its figures.
    pub fn figures(self) -> Figures {
        let (name, memory_mib, reserved_mib, watts, idle, clocks) = match self {
            Self::TitanX => (
                "NVIDIA TITAN X (Pascal)",
                12_288,
                91,
                250,
                9,
                (139, 1911, 5005),
            ),
            Self::TitanXMaxwell => (
                "NVIDIA GeForce GTX TITAN X",
                12_288,
                76,
                250,
                15,
                (135, 1075, 3505),
            ),
            Self::K80 => ("Tesla K80", 11_441, 0, 149, 26, (324, 875, 2505)),
            Self::V100 => (
                "Tesla V100-SXM2-16GB",
                16_384,
                224,
                300,
                42,
                (135, 1530, 877),
            ),
            Self::A100 => (
                "NVIDIA A100-SXM4-80GB",
                81_920,
                621,
                400,
                55,
                (210, 1410, 1593),
            ),
            Self::H100 => (
                "NVIDIA H100 80GB HBM3",
                81_559,
                551,
                700,
                70,
                (345, 1980, 2619),
            ),
        };
        Figures {
            name,
            memory_mib,
            reserved_mib,
            power_limit_mw: watts * 1000,
            idle_power_mw: idle * 1000,
            idle_clock_mhz: clocks.0,
            busy_clock_mhz: clocks.1,
            memory_clock_mhz: clocks.2,
        }
    }

    /// The code a call gives on this card when the script says nothing: 0, 3 (not supported) or 13 (the driver branch
    /// of the card has no such function).
    pub fn code(self, call: &str) -> u32 {
        const FUNCTION_NOT_FOUND: u32 = 13;
        let old = matches!(self, Self::TitanX | Self::TitanXMaxwell | Self::K80);
        match call {
            "MemoryInfo_v2" if self == Self::K80 => FUNCTION_NOT_FOUND,
            "ComputeRunningProcesses_v3" | "GraphicsRunningProcesses_v3" if self == Self::K80 => {
                FUNCTION_NOT_FOUND
            }
            "MPSComputeRunningProcesses_v3" | "TotalEnergyConsumption" if old => 3,
            "ViolationStatus" if matches!(self, Self::TitanX | Self::TitanXMaxwell) => 3,
            "TotalEccErrors" if matches!(self, Self::TitanX | Self::TitanXMaxwell) => 3,
            _ => 0,
        }
    }
}
