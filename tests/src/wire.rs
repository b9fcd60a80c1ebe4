//! A wire between an agent and its coordinator that a test can cut and mend, as a network does.
//!
//! Used by suites; it copies bytes and understands none of them.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// What the wire does with bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Passes them on.
    Whole,
    /// Holds them, both ways, without closing anything: packets are lost, nobody is told.
    Stalled,
    /// Connections end at once, and no new ones are made.
    Cut,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    mode: Mode,
    number: u64,
    ends: BTreeMap<u64, [TcpStream; 2]>,
}

/// The wire. Ends with its test's process.
#[derive(Debug)]
pub struct Wire {
    shared: Arc<Shared>,
    address: SocketAddr,
}

impl Wire {
    /// A wire to this port of loopback.
    pub fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
        let address = listener.local_addr().expect("it is bound");
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                mode: Mode::Whole,
                number: 0,
                ends: BTreeMap::new(),
            }),
            changed: Condvar::new(),
        });
        let of_thread = shared.clone();
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                of_thread.join(near, port);
            }
        });
        Self { shared, address }
    }

    /// `https://127.0.0.1:PORT`: what the agent dials.
    pub fn address(&self) -> String {
        format!("https://{}", self.address)
    }

    /// Ends every connection and refuses new ones.
    pub fn cut(&self) {
        self.set(Mode::Cut);
        for (_, ends) in std::mem::take(&mut self.shared.lock().ends) {
            for end in ends {
                let _ = end.shutdown(Shutdown::Both);
            }
        }
    }

    /// Holds back all bytes; connections stay.
    pub fn stall(&self) {
        self.set(Mode::Stalled);
    }

    /// Passes on what was held, and new connections.
    pub fn mend(&self) {
        self.set(Mode::Whole);
    }

    fn set(&self, mode: Mode) {
        self.shared.lock().mode = mode;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn join(self: &Arc<Self>, near: TcpStream, port: u16) {
        if self.lock().mode == Mode::Cut {
            return;
        }
        let Ok(far) = TcpStream::connect(("127.0.0.1", port)) else {
            return;
        };
        let both = || Ok::<_, std::io::Error>([near.try_clone()?, far.try_clone()?]);
        let (Ok(one), Ok(other), Ok(kept)) = (both(), both(), both()) else {
            return;
        };
        let number = {
            let mut state = self.lock();
            state.number += 1;
            let number = state.number;
            state.ends.insert(number, kept);
            number
        };
        let ([a, b], [c, d]) = (one, other);
        for (from, to) in [(a, b), (d, c)] {
            let shared = self.clone();
            std::thread::spawn(move || shared.copy(number, from, to));
        }
    }

    fn copy(&self, number: u64, mut from: TcpStream, mut to: TcpStream) {
        let mut bytes = vec![0; 16 * 1024];
        while let Ok(read @ 1..) = from.read(&mut bytes) {
            let state = self
                .changed
                .wait_while(self.lock(), |state| state.mode == Mode::Stalled);
            let whole = state.is_ok_and(|state| state.mode == Mode::Whole);
            if !whole || to.write_all(&bytes[..read]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
        let _ = from.shutdown(Shutdown::Both);
        self.lock().ends.remove(&number);
    }
}
