//! The server's thread, and the test's side of it.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::thread::JoinHandle;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::request::{Request, Vendor};
use super::script::Script;
use super::serve::answer;
use super::state::State;
use super::step::Usage;
use crate::{wait_until, wait_until_async};

/// A scripted model that listens on loopback until it is dropped.
///
/// It runs on a thread of its own with a runtime of its own, so tests with
/// and without one can use it. Dropping it closes every connection, ends the
/// thread and panics if the script was asked for more than it has.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    state: State,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ModelServer {
    /// Listens on a free port of 127.0.0.1.
    ///
    /// # Panics
    ///
    /// When there is none, or no thread.
    #[must_use]
    pub fn start(script: Script) -> Self {
        let state = State::new(script);
        let (listener, address) = match listener() {
            Ok(listening) => listening,
            Err(error) => panic!("cannot listen on loopback: {error}"),
        };
        let (stop, stopped) = oneshot::channel();
        let serving = state.clone();
        let thread = std::thread::Builder::new()
            .name("loopback-model".to_owned())
            .spawn(move || run(listener, &serving, stopped));
        match thread {
            Ok(thread) => Self {
                address,
                state,
                stop: Some(stop),
                thread: Some(thread),
            },
            Err(error) => panic!("cannot start the model's thread: {error}"),
        }
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.address.port()
    }

    /// `http://127.0.0.1:<port>`, the base URL of Messages.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// `http://127.0.0.1:<port>/v1`, the base URL of Responses.
    #[must_use]
    pub fn openai_url(&self) -> String {
        format!("{}/v1", self.url())
    }

    /// All requests so far, in the order of their arrival.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.state.log(<[Request]>::to_vec)
    }

    /// The requests that took a step.
    #[must_use]
    pub fn turns(&self) -> Vec<Request> {
        let mut requests = self.requests();
        requests.retain(|request| request.step.is_some());
        requests
    }

    /// Blocks until `count` requests took a step; an answer need not have
    /// been given.
    ///
    /// # Panics
    ///
    /// When they do not within [`crate::BOUND`].
    #[track_caller]
    pub fn wait_for_turns(&self, count: usize) {
        wait_until(&format!("{count} turns of the model"), || self.has(count));
    }

    /// As [`ModelServer::wait_for_turns`], without blocking the runtime's
    /// thread.
    ///
    /// # Panics
    ///
    /// When they do not within [`crate::BOUND`].
    pub async fn wait_for_turns_async(&self, count: usize) {
        wait_until_async(&format!("{count} turns of the model"), || self.has(count)).await;
    }

    /// Blocks until `count` requests of any kind came.
    ///
    /// # Panics
    ///
    /// When they do not within [`crate::BOUND`].
    #[track_caller]
    pub fn wait_for_requests(&self, count: usize) {
        wait_until(&format!("{count} requests"), || {
            self.state.log(<[_]>::len) >= count
        });
    }

    fn has(&self, turns: usize) -> bool {
        let taken = |log: &[Request]| log.iter().filter(|it| it.step.is_some()).count();
        self.state.log(taken) >= turns
    }

    /// The sum of what was scripted over the answers that this vendor's
    /// requests got whole. An answer counts when its last byte was handed to
    /// the connection, so also when the agent was killed before it read it.
    #[must_use]
    pub fn usage_served(&self, vendor: Vendor) -> Usage {
        self.state.log(|log| {
            let of_vendor = log.iter().filter(|it| it.vendor == Some(vendor));
            of_vendor.filter_map(|it| it.served).sum()
        })
    }

    /// How many scripted steps no request has taken, repeated ones aside.
    #[must_use]
    pub fn steps_left(&self) -> usize {
        self.state.steps_left()
    }

    /// Takes what went wrong, for a test that expects it: the script was used
    /// up or panicked, or a request could not be read.
    #[must_use]
    pub fn take_faults(&self) -> Vec<String> {
        self.state.take_faults()
    }

    /// Ends the server; the same as dropping it, said aloud.
    ///
    /// # Panics
    ///
    /// When anything went wrong that [`ModelServer::take_faults`] did not take.
    pub fn finish(self) {
        drop(self);
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().map(JoinHandle::join);
        let faults = self.state.take_faults();
        if std::thread::panicking() {
            return;
        }
        if let Some(Err(panic)) = ended {
            std::panic::resume_unwind(panic);
        }
        assert!(
            faults.is_empty(),
            "the loopback model could not do as scripted:\n{}",
            faults.join("\n")
        );
    }
}

fn listener() -> std::io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Serves until `stopped`; then every connection is dropped where it is.
fn run(listener: TcpListener, state: &State, stopped: oneshot::Receiver<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => panic!("cannot make the model's runtime: {error}"),
    };
    runtime.block_on(async {
        let accepted = accept(listener, state);
        tokio::select! {
            _ = stopped => {}
            error = accepted => state.fault(format!("cannot accept connections: {error}")),
        }
    });
}

/// Serves each connection by a task of its own; ends only on an error.
async fn accept(listener: TcpListener, state: &State) -> std::io::Error {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return error,
    };
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let state = state.clone();
                    let service = service_fn(move |request| answer(state.clone(), request));
                    let connection = http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service);
                    // A peer that goes away and a break that is scripted end
                    // a connection with an error: both are meant.
                    connections.spawn(async move { drop(connection.await) });
                }
                Err(error) => return error,
            },
            Some(ended) = connections.join_next() => {
                if let Err(error) = ended {
                    state.fault(format!("a connection's task ended badly: {error}"));
                }
            }
        }
    }
}
