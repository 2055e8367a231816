//! What an attempt may use: sends, waits, money.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use jig_protocol::limits;
use jig_protocol::outcome::Spend;
use jig_runtime::{MOST_USD, Usage};

/// The attempt's sends: one atomic check-and-take for every way an agent can be
/// asked.
#[derive(Debug)]
pub(crate) struct SendBudget {
    used: AtomicU32,
    most: u32,
}

impl SendBudget {
    /// A budget of `most` sends.
    pub(crate) fn new(most: u32) -> Self {
        Self {
            used: AtomicU32::new(0),
            most,
        }
    }

    /// Takes one send; `false` when none is left.
    pub(crate) fn take(&self) -> bool {
        self.used
            .try_update(Ordering::AcqRel, Ordering::Acquire, |used| {
                (used < self.most).then_some(used + 1)
            })
            .is_ok()
    }

    /// Gives a send back that could not start.
    pub(crate) fn give_back(&self) {
        // Saturating: giving back more than was taken must not open the budget.
        let _ = self
            .used
            .try_update(Ordering::AcqRel, Ordering::Acquire, |used| {
                used.checked_sub(1)
            });
    }

    /// Sends taken.
    pub(crate) fn used(&self) -> u32 {
        self.used.load(Ordering::Acquire)
    }

    /// Sends there are.
    pub(crate) fn most(&self) -> u32 {
        self.most
    }
}

/// Metered use over one entry of a phase, or over the attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Meter {
    /// What the result document says.
    pub(crate) spend: Spend,
    /// Tokens in the model's context after the last metered send.
    pub(crate) context_tokens: u64,
}

impl Meter {
    /// Counts a send that was started, with what it used where that is known.
    pub(crate) fn count(&mut self, usage: Option<&Usage>) {
        self.spend.sends += 1;
        let Some(usage) = usage else {
            self.spend.unmetered_sends += 1;
            return;
        };
        self.spend.cost_usd += amount(usage.cost_usd);
        if let Some(late) = usage.late {
            let cost = amount(Some(late.cost_usd));
            self.spend.cost_usd += cost;
            self.spend.late_usd += cost;
            let sends = late.sends.min(self.spend.unmetered_sends);
            self.spend.unmetered_sends -= sends;
            self.spend.late_sends += sends;
        }
        self.spend.input_tokens = self.spend.input_tokens.saturating_add(usage.input_tokens);
        self.spend.output_tokens = self.spend.output_tokens.saturating_add(usage.output_tokens);
        self.context_tokens = usage.context_tokens;
    }

    /// Tokens in both directions.
    pub(crate) fn tokens(&self) -> u64 {
        self.spend
            .input_tokens
            .saturating_add(self.spend.output_tokens)
    }

    /// Whether the money is used up, checked before every send.
    pub(crate) fn reached(&self, budget_usd: Option<f64>) -> bool {
        budget_usd.is_some_and(|budget| self.spend.cost_usd >= budget)
    }
}

/// What was said to have been spent; nothing when that is no amount.
fn amount(usd: Option<f64>) -> f64 {
    usd.filter(|usd| (0.0..=MOST_USD).contains(usd))
        .unwrap_or(0.0)
}

/// How long to wait before repeat `nth` (from 1) of a send that an overloaded
/// vendor refused. The vendor's own figure wins; else the wait doubles from the
/// floor to the ceiling, of which `jitter` (0 to 1) takes away up to half.
pub(crate) fn backoff(nth: u32, retry_after: Option<Duration>, jitter: f64) -> Duration {
    if let Some(stated) = retry_after {
        return stated;
    }
    let doublings = nth.saturating_sub(1).min(16);
    let full = limits::BACKOFF_FLOOR
        .saturating_mul(1 << doublings)
        .min(limits::BACKOFF_CEILING);
    full.mul_f64(1.0 - jitter.clamp(0.0, 1.0) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jig_runtime::Late;
    use std::sync::{Arc, Barrier};

    #[test]
    fn contenders_never_take_more_than_there_is() {
        for _ in 0..50 {
            let budget = Arc::new(SendBudget::new(64));
            let barrier = Arc::new(Barrier::new(8));
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    let (budget, barrier) = (Arc::clone(&budget), Arc::clone(&barrier));
                    std::thread::spawn(move || {
                        barrier.wait();
                        let mut kept = 0_u32;
                        for round in 0..20 {
                            if budget.take() {
                                if round % 5 == 0 {
                                    budget.give_back();
                                } else {
                                    kept += 1;
                                }
                            }
                        }
                        kept
                    })
                })
                .collect();
            let kept: u32 = threads.into_iter().map(|t| t.join().unwrap()).sum();
            assert_eq!(kept, budget.used());
            assert!(kept <= 64, "{kept}");
        }
    }

    #[test]
    fn a_slot_that_is_given_back_can_be_taken_again() {
        let budget = SendBudget::new(1);
        assert!(budget.take());
        assert!(!budget.take());
        budget.give_back();
        assert!(budget.take());
        budget.give_back();
        budget.give_back();
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn waits_double_up_to_the_ceiling_and_jitter_only_shortens() {
        let waits: Vec<u64> = (1..=8)
            .map(|nth| backoff(nth, None, 0.0).as_secs())
            .collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(backoff(1, None, 1.0), Duration::from_millis(500));
        assert_eq!(backoff(u32::MAX, None, 0.0), limits::BACKOFF_CEILING);
        let stated = Duration::from_secs(777);
        assert_eq!(backoff(1, Some(stated), 1.0), stated);
    }

    #[test]
    fn unknown_cost_is_unknown_and_never_negative() {
        let mut meter = Meter::default();
        meter.count(None);
        meter.count(Some(&Usage {
            input_tokens: 3,
            output_tokens: 4,
            cost_usd: Some(0.5),
            context_tokens: 9,
            late: None,
        }));
        meter.count(Some(&Usage {
            cost_usd: Some(-1.0),
            ..Usage::default()
        }));
        assert_eq!(meter.spend.sends, 3);
        assert_eq!(meter.spend.unmetered_sends, 1);
        assert_eq!(meter.tokens(), 7);
        assert!(meter.reached(Some(0.5)) && !meter.reached(Some(0.51)));
        assert!(!meter.reached(None));
    }

    #[test]
    fn what_is_told_late_is_spent_and_no_longer_unmetered() {
        let late = |sends, cost_usd| Usage {
            cost_usd: Some(0.5),
            late: Some(Late { sends, cost_usd }),
            ..Usage::default()
        };
        let mut meter = Meter::default();
        meter.count(None);
        meter.count(None);
        meter.count(Some(&late(1, 0.25)));
        let spend = meter.spend;
        assert_eq!((spend.cost_usd, spend.late_usd), (0.75, 0.25));
        assert_eq!(
            (spend.sends, spend.unmetered_sends, spend.late_sends),
            (3, 1, 1)
        );
        // Of an entry that was left before.
        meter.count(Some(&late(5, 0.25)));
        let spend = meter.spend;
        assert_eq!((spend.unmetered_sends, spend.late_sends), (0, 2));
        meter.count(Some(&late(1, f64::NAN)));
        let absurd = Usage {
            cost_usd: Some(1.7e308),
            late: Some(Late {
                sends: 1,
                cost_usd: f64::INFINITY,
            }),
            ..Usage::default()
        };
        meter.count(Some(&absurd));
        meter.count(Some(&absurd));
        assert_eq!((meter.spend.cost_usd, meter.spend.late_usd), (2.0, 0.5));
    }
}
