//! The child's side of the probe: owns NVML, answers one line per request, ends when its standard input does.
//!
//! Run by `main` as `drover-agent gpu-probe`, started by the collector only. It must not start a tokio runtime or keep
//! anything but NVML.

pub mod device;
pub mod fault;

use std::io::{self, BufRead, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use nvml_wrapper::Nvml;

use crate::probe::op::{BlackBox, Op};
use crate::probe::protocol::{Answer, MAX_REQUEST_BYTES, Reading, Ready, Request};
use device::Devices;

/// After its parent's end the child has this long to leave the driver in order, then it ends by force.
const LEAVE: Duration = Duration::from_millis(1200);

/// Arguments of `drover-agent gpu-probe`.
#[derive(Debug, Clone, clap::Args)]
pub struct ProbeArgs {
    /// The NVML library; default: libnvidia-ml.so.1 by the loader's search path.
    #[arg(long, value_name = "PATH")]
    pub library: Option<PathBuf>,
}

/// Runs the child until its standard input ends.
#[must_use]
pub fn main(args: &ProbeArgs) -> ExitCode {
    let requests = requests();
    let mut black_box = BlackBox::inherited();
    black_box.mark(Op::Init, None);
    let mut builder = Nvml::builder();
    if let Some(library) = &args.library {
        builder.lib_path(library.as_os_str());
    }
    let nvml = match builder.init() {
        Ok(nvml) => nvml,
        Err(error) => {
            let _gone = say(&Answer::Failed(fault::init_failure(&error)));
            return ExitCode::SUCCESS;
        }
    };
    black_box.mark(Op::DriverVersion, None);
    let driver_version = nvml.sys_driver_version().ok();
    black_box.mark(Op::Idle, None);
    if say(&Answer::Ready(Ready { driver_version })).is_ok() {
        serve(&nvml, &mut black_box, &requests);
    }
    black_box.mark(Op::Shutdown, None);
    // Whatever shutdown says, the end of the process closes the handles.
    let _ignored = nvml.shutdown();
    ExitCode::SUCCESS
}

fn serve(nvml: &Nvml, black_box: &mut BlackBox, requests: &mpsc::Receiver<Request>) {
    let mut devices = Devices::default();
    while let Ok(request) = requests.recv() {
        let mut reading = Reading {
            round: request.round,
            processes: request.processes,
            ..Reading::default()
        };
        devices.read(nvml, black_box, &request, &mut reading);
        black_box.mark(Op::Idle, None);
        if say(&Answer::Round(reading)).is_err() {
            return;
        }
    }
}

/// Reads requests on a thread of its own, because the first may be inside the driver when the parent ends.
fn requests() -> mpsc::Receiver<Request> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        let mut line = Vec::new();
        loop {
            line.clear();
            let limit = MAX_REQUEST_BYTES as u64;
            match input.by_ref().take(limit).read_until(b'\n', &mut line) {
                Ok(length) if length > 0 && line.ends_with(b"\n") => {}
                _ => break,
            }
            let Ok(request) = serde_json::from_slice(&line) else {
                break;
            };
            if send.send(request).is_err() {
                break;
            }
        }
        drop(send);
        std::thread::sleep(LEAVE);
        // Still here: a driver call does not return. Exit handlers of the library could hang as well.
        let _impossible = kill(Pid::this(), Signal::SIGKILL);
    });
    receive
}

fn say(answer: &Answer) -> io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    let mut output = io::stdout().lock();
    output.write_all(&line)?;
    output.flush()
}
