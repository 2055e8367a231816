//! All that the model will answer.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use super::request::{Request, Vendor};
use super::step::Step;

type Predicate = Arc<dyn Fn(&Request) -> bool + Send + Sync>;

/// Queues of steps, and which requests take from which.
#[derive(Debug, Clone, Default)]
pub struct Script {
    pub(super) queues: Vec<Queue>,
    pub(super) toolless: bool,
}

#[derive(Clone)]
pub(super) struct Queue {
    pub(super) name: String,
    pub(super) takes: Predicate,
    pub(super) steps: VecDeque<Step>,
    /// How many steps were taken.
    pub(super) taken: usize,
}

impl Script {
    /// A script without steps: every request of a model is a fault.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What Messages requests get that no [`Script::queue`] takes.
    #[must_use]
    pub fn anthropic(self, steps: impl IntoIterator<Item = Step>) -> Self {
        self.vendor(Vendor::Anthropic, steps)
    }

    /// What Responses requests get that no [`Script::queue`] takes.
    #[must_use]
    pub fn openai(self, steps: impl IntoIterator<Item = Step>) -> Self {
        self.vendor(Vendor::OpenAi, steps)
    }

    /// A queue of its own for the requests that `takes` holds for: those of
    /// one role, known by a phrase of its system prompt. The first queue
    /// counts that takes the request; the vendors' own come last.
    #[must_use]
    pub fn queue(
        mut self,
        name: impl Into<String>,
        takes: impl Fn(&Request) -> bool + Send + Sync + 'static,
        steps: impl IntoIterator<Item = Step>,
    ) -> Self {
        let at = self.queues.iter().position(Queue::is_of_vendor);
        let queue = Queue {
            name: name.into(),
            takes: Arc::new(takes),
            steps: steps.into_iter().collect(),
            taken: 0,
        };
        self.queues.insert(at.unwrap_or(self.queues.len()), queue);
        self
    }

    /// Lets Messages requests without tools take steps as well. Otherwise
    /// such a request (a title, a probe) is answered "ok" for no tokens.
    #[must_use]
    pub const fn steps_without_tools(mut self) -> Self {
        self.toolless = true;
        self
    }

    fn vendor(mut self, vendor: Vendor, steps: impl IntoIterator<Item = Step>) -> Self {
        let name = vendor.as_str();
        let queue = self.queues.iter_mut().find(|queue| queue.name == name);
        match queue {
            Some(queue) => queue.steps.extend(steps),
            None => self.queues.push(Queue {
                name: name.to_owned(),
                takes: Arc::new(move |request| request.vendor == Some(vendor)),
                steps: steps.into_iter().collect(),
                taken: 0,
            }),
        }
        self
    }
}

impl Queue {
    fn is_of_vendor(&self) -> bool {
        [Vendor::Anthropic, Vendor::OpenAi]
            .iter()
            .any(|vendor| self.name == vendor.as_str())
    }

    /// The next step, which stays if it is repeated.
    pub(super) fn take(&mut self) -> Option<(usize, Step)> {
        let step = match self.steps.front() {
            Some(step) if step.repeated => Some(step.clone()),
            _ => self.steps.pop_front(),
        }?;
        self.taken += 1;
        Some((self.taken - 1, step))
    }

    pub(super) fn left(&self) -> usize {
        self.steps.iter().filter(|step| !step.repeated).count()
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("name", &self.name)
            .field("steps", &self.steps)
            .finish_non_exhaustive()
    }
}
