//! The thread that starts tools.
//!
//! A parent-death signal belongs to the thread that forked: when that thread
//! ends, the signal comes, though the process lives on. So one thread, which
//! never ends before the process does, forks them all.

use std::io;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};

use rustix::process::Signal;

use crate::fork::{ChildSetup, Leads, set_up};
use crate::supervisor::Confinement;

struct Order {
    command: Command,
    answer: Sender<io::Result<Child>>,
}

/// Starts `command` as leader of its own process group, to end when this
/// process ends.
pub(super) fn spawn(mut command: Command) -> io::Result<Child> {
    set_up(
        &mut command,
        ChildSetup {
            leads: Leads::Group,
            // TERM, not KILL: git removes its lock files on it.
            death_signal: Some(Signal::TERM),
            keep: None,
            confinement: Confinement::None,
        },
    );
    let (answer, answered) = channel();
    orders()?
        .send(Order { command, answer })
        .map_err(io::Error::other)?;
    answered.recv().map_err(io::Error::other)?
}

fn orders() -> io::Result<Sender<Order>> {
    static ORDERS: OnceLock<Mutex<Option<Sender<Order>>>> = OnceLock::new();
    let slot = ORDERS.get_or_init(Mutex::default);
    let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(orders) = &*slot {
        return Ok(orders.clone());
    }
    let (orders, received) = channel();
    std::thread::Builder::new()
        .name("jig-tools".into())
        .spawn(move || serve(&received))?;
    Ok(slot.insert(orders).clone())
}

fn serve(orders: &Receiver<Order>) {
    for Order {
        mut command,
        answer,
    } in orders
    {
        let started = command.spawn();
        // Pipes that the command holds must not stay open with us.
        drop(command);
        // Whoever asked waits for the answer, so it cannot be lost.
        let _ = answer.send(started);
    }
}
