//! What the server's thread and the test share.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::request::{Request, StepTaken, Vendor};
use super::script::{Queue, Script};
use super::step::{Kind, Step, Usage};

/// A number that no other answer of this process has: agents that meet two
/// servers in one session tell the answers apart by their ids.
pub(super) fn serial() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Closures may nest steps that are computed; a cycle is a mistake.
const DEEPEST: usize = 8;

/// The queues, the log and what went wrong.
#[derive(Debug, Clone)]
pub(super) struct State {
    inner: Arc<Mutex<Inner>>,
    /// Only for their predicates.
    queues: Arc<[Queue]>,
    toolless: bool,
}

#[derive(Debug, Default)]
struct Inner {
    log: Vec<Request>,
    queues: Vec<Queue>,
    faults: Vec<String>,
}

/// What a request gets.
#[derive(Debug)]
pub(super) enum Answer {
    Step(Box<Step>),
    /// It asks for no step.
    Free,
    /// The script has none for it.
    Nothing(String),
}

impl State {
    pub(super) fn new(script: Script) -> Self {
        Self {
            queues: script.queues.clone().into(),
            toolless: script.toolless,
            inner: Arc::new(Mutex::new(Inner {
                queues: script.queues,
                ..Inner::default()
            })),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a request that asks no model.
    pub(super) fn enter(&self, request: Request) -> usize {
        let mut inner = self.lock();
        inner.log.push(request);
        inner.log.len() - 1
    }

    /// Enters a request with the step it takes; its place in the log and what
    /// it gets.
    pub(super) fn route(&self, mut request: Request) -> (usize, Answer) {
        let with_tools = !request.tools().is_empty();
        if request.vendor == Some(Vendor::Anthropic) && !with_tools && !self.toolless {
            return (self.enter(request), Answer::Free);
        }
        let chosen = self.checked("a predicate of the script", || {
            (self.queues.iter()).position(|queue| (queue.takes)(&request))
        });
        let (at, taken) = {
            let mut inner = self.lock();
            let taken = chosen.flatten().map(|at| {
                let queue = &mut inner.queues[at];
                (queue.name.clone(), queue.take())
            });
            if let Some((queue, Some((index, _)))) = &taken {
                let (queue, index) = (queue.clone(), *index);
                request.step = Some(StepTaken { queue, index });
            }
            inner.log.push(request.clone());
            (inner.log.len() - 1, taken)
        };
        let answer = match taken {
            Some((_, Some((_, step)))) => self.computed(step, &request),
            Some((name, None)) => {
                self.nothing(format!("the queue {name} has no step left"), &request)
            }
            None => self.nothing("no queue takes it".to_owned(), &request),
        };
        (at, answer)
    }

    fn computed(&self, mut step: Step, request: &Request) -> Answer {
        for _ in 0..DEEPEST {
            let Kind::FromRequest(make) = &step.kind else {
                return Answer::Step(Box::new(step));
            };
            match self.checked("a step of the script", || make(request)) {
                Some(made) => step = made,
                None => return Answer::Nothing("a step of the script panicked".to_owned()),
            }
        }
        self.nothing("its step never ends being computed".to_owned(), request)
    }

    fn nothing(&self, why: String, request: &Request) -> Answer {
        self.fault(format!("{} {}: {why}", request.method, request.path));
        Answer::Nothing(why)
    }

    /// Runs what the test wrote; its panic is a fault.
    fn checked<T>(&self, what: &str, run: impl FnOnce() -> T) -> Option<T> {
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(value) => Some(value),
            Err(panic) => {
                let message = panic
                    .downcast_ref::<String>()
                    .map(String::as_str)
                    .or_else(|| panic.downcast_ref::<&str>().copied())
                    .unwrap_or("without a message");
                self.fault(format!("{what} panicked: {message}"));
                None
            }
        }
    }

    pub(super) fn fault(&self, fault: String) {
        self.lock().faults.push(fault);
    }

    pub(super) fn take_faults(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().faults)
    }

    pub(super) fn answered(&self, at: usize, status: u16) {
        self.lock().log[at].status = status;
    }

    pub(super) fn served(&self, at: usize, usage: Usage) {
        self.lock().log[at].served = Some(usage);
    }

    pub(super) fn log<T>(&self, look: impl FnOnce(&[Request]) -> T) -> T {
        look(&self.lock().log)
    }

    pub(super) fn steps_left(&self) -> usize {
        self.lock().queues.iter().map(Queue::left).sum()
    }
}
