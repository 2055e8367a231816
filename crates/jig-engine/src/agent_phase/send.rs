//! One question to an agent and its answer, with the waits in between that an
//! overloaded vendor asks for.

use std::time::Duration;

use jig_process::{Confinement, StopReason};
use jig_protocol::event::{DegradedCorrection, EngineError, EventBody, RateLimited};
use jig_protocol::outcome::{AttemptEnd, Cause, FailureClass};
use jig_protocol::{limits, text};
use jig_runtime::{FilterSource, SendControl, SendEnd, SendReport, SendRequest, Stopped};
use tokio::sync::mpsc;

use super::ladder::Ladder;
use super::transcript::{Exchange, digest};
use crate::attempt::Attempt;
use crate::budget::backoff;
use crate::ending::Ending;
use crate::entry::Close;
use crate::fault::Step;
use crate::redact::RedactingFilter;
use crate::state::Failure;

/// What a question came to.
#[derive(Debug)]
pub(super) enum Sent {
    /// The agent's final text.
    Answered(String),
    /// The entry ends.
    Ended(Close),
}

impl Sent {
    fn ended(ending: Ending, class: Option<FailureClass>) -> Self {
        Self::Ended(Close::Ended { ending, class })
    }
}

impl Attempt<'_> {
    /// Asks until there is an answer or an end; repeats what the vendor was too
    /// busy for.
    pub(super) async fn ask(
        &mut self,
        ladder: &Ladder<'_>,
        prompt: &str,
        repeats: &mut u32,
    ) -> Sent {
        loop {
            let report = match self.send_once(ladder, prompt).await {
                Ok(report) => report,
                Err(sent) => return sent,
            };
            match report.end {
                SendEnd::Failed {
                    class,
                    message,
                    retry_after,
                    ..
                } if class.is_retryable() && *repeats < limits::RETRYABLE_SENDS => {
                    *repeats += 1;
                    let waited = self
                        .wait_for_vendor(ladder, class, &message, retry_after, *repeats)
                        .await;
                    if let Err(close) = waited {
                        return Sent::Ended(close);
                    }
                }
                end => return self.classify(ladder, prompt, end),
            }
        }
    }

    /// The wait before a repeat, within the clocks.
    async fn wait_for_vendor(
        &mut self,
        ladder: &Ladder<'_>,
        class: FailureClass,
        message: &str,
        retry_after: Option<Duration>,
        nth: u32,
    ) -> Result<(), Close> {
        let wait = backoff(nth, retry_after, self.jitter()).mul_f64(self.engine.wait_scale);
        self.trace.emit(
            Some(ladder.name()),
            &EventBody::RateLimited(RateLimited {
                class,
                wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
            }),
        );
        match ladder.deadline.bound(self.sleep(wait)).await {
            Ok(()) => Ok(()),
            Err(StopReason::PhaseTimeout) => Err(Close::Failed {
                failure: Failure {
                    cause: class.into(),
                    error: format!(
                        "the phase's time was up while the vendor was waited for ({message})"
                    ),
                },
                class: Some(class),
            }),
            Err(reason) => Err(Self::outside(reason, ladder.name(), Some(class))),
        }
    }

    /// One send. Everything it used and left behind is accounted for when this
    /// returns.
    async fn send_once(&mut self, ladder: &Ladder<'_>, prompt: &str) -> Result<SendReport, Sent> {
        self.may_send(ladder)?;
        let budget = self.definition.budget_usd;
        if let (true, Some(budget)) = (self.state.meter.reached(budget), budget) {
            return Err(Sent::ended(self.spend_ceiling(budget, ladder.name()), None));
        }
        if !self.sends.take() {
            return Err(Sent::ended(self.send_budget(ladder.name()), None));
        }
        match self.start_send(ladder, prompt).await {
            Ok(report) => {
                self.account(ladder, &report);
                self.reach(Step::Sent)
                    .map_err(|ending| Sent::ended(ending, None))?;
                Ok(report)
            }
            Err(ending) => {
                self.sends.give_back();
                let class = (ending.cause == Cause::Auth).then_some(FailureClass::Auth);
                Err(Sent::ended(ending, class))
            }
        }
    }

    fn may_send(&self, ladder: &Ladder<'_>) -> Result<(), Sent> {
        match ladder.deadline.reached() {
            None => Ok(()),
            Some(reason) => Err(Self::stopped(ladder, reason, "before a send")),
        }
    }

    /// An entry's clock is a death; every other reason ends the attempt.
    fn stopped(ladder: &Ladder<'_>, reason: StopReason, when: &str) -> Sent {
        match reason {
            StopReason::PhaseTimeout | StopReason::Silence => Sent::Ended(Close::Died {
                class: FailureClass::KilledByClock,
                error: format!("{reason} {when}"),
            }),
            other => Sent::Ended(Self::outside(other, ladder.name(), None)),
        }
    }

    /// Starts the send and sees it through. An error means that nothing was
    /// started.
    async fn start_send(
        &mut self,
        ladder: &Ladder<'_>,
        prompt: &str,
    ) -> Result<SendReport, Ending> {
        self.reach(Step::Send)?;
        self.check_login(ladder)?;
        let prompt = self.remind(ladder, prompt)?;
        let request = self.request(ladder, prompt)?;
        self.trace.flush().await;
        let agent = self.runtime_of(ladder.owner)?;
        let runtime = std::sync::Arc::clone(&agent.runtime);
        let attempt = self.attempt_id.clone();
        let role = self.state.session(&attempt, ladder.owner);
        role.used = true;
        let mut session = role.session.clone();
        if let Some(open) = self.state.open.as_mut() {
            open.acted = true;
            open.sending = true;
        }
        let (events, inbox) = mpsc::channel(limits::EVENT_CHANNEL as usize);
        let control = SendControl {
            deadline: ladder.deadline.clone(),
            silence: self
                .definition
                .limits
                .silence_timeout
                .unwrap_or(limits::SILENCE_TIMEOUT),
            events,
            live: Some(self.live_supervisors()),
            stderr_filter: self.stderr_filter(),
        };
        let report = self
            .relay(
                ladder.name(),
                runtime.send(&mut session, request, control),
                inbox,
            )
            .await;
        self.state.session(&attempt, ladder.owner).session = session;
        Ok(report)
    }

    fn stderr_filter(&self) -> Option<FilterSource> {
        let redactor = std::sync::Arc::clone(self.trace.redactor());
        if redactor.is_empty() {
            return None;
        }
        Some(std::sync::Arc::new(move || {
            Box::new(RedactingFilter::new(std::sync::Arc::clone(&redactor)))
        }))
    }

    /// Gives a runtime without a memory a fresh session and what was said
    /// before.
    fn remind(&mut self, ladder: &Ladder<'_>, prompt: &str) -> Result<String, Ending> {
        let can_resume = self.runtime_of(ladder.owner)?.capabilities.can_resume;
        let attempt = self.attempt_id.clone();
        let role = self.state.session(&attempt, ladder.owner);
        if can_resume || !role.used {
            return Ok(prompt.to_owned());
        }
        let reminder = digest(&role.transcript);
        self.state.renew_session(&attempt, ladder.owner, true);
        let session = self
            .state
            .session(&attempt, ladder.owner)
            .session
            .key
            .clone();
        self.trace.emit(
            Some(ladder.name()),
            &EventBody::DegradedCorrection(DegradedCorrection {
                role: ladder.owner.to_owned(),
                session,
                reason: "the runtime cannot continue a session".to_owned(),
            }),
        );
        Ok(format!("{reminder}{prompt}"))
    }

    /// A login that runs out before the phase's time does would fail in the
    /// middle of the work: nothing is sent with it.
    fn check_login(&self, ladder: &Ladder<'_>) -> Result<(), Ending> {
        let Some(expires) = self.prepared.homes.login_expires_at(ladder.owner) else {
            return Ok(());
        };
        let left = ladder.deadline.remaining().unwrap_or_default();
        if expires > self.engine.host.clock.now().saturating_add(left) {
            return Ok(());
        }
        Err(Ending::failed(
            Cause::Auth,
            format!(
                "the login of role {} runs out at {expires}, before the time of phase {} does; \
                 log in again, use a long-lived token, or name an API key in `env` and leave the \
                 login out (--no-seed-auth)",
                ladder.owner,
                ladder.name()
            ),
        ))
    }

    fn request(&self, ladder: &Ladder<'_>, prompt: String) -> Result<SendRequest, Ending> {
        let broken = |error: crate::home::HomeError| {
            Ending::infrastructure(format!(
                "the HOME of role {} could not be prepared: {}",
                ladder.owner,
                text::with_causes(&error)
            ))
        };
        let prompts = self.prepared.prompts.get(ladder.owner).ok_or_else(|| {
            Ending::infrastructure(format!(
                "the prompts of role {} were not read",
                ladder.owner
            ))
        })?;
        let homes = &self.prepared.homes;
        let remove_at_end = homes.write_seed(ladder.owner).map_err(broken)?;
        Ok(SendRequest {
            role: ladder.owner.to_owned(),
            prompt,
            system_prompt: prompts.system.clone(),
            model: ladder.role.model.clone(),
            effort: ladder.role.effort,
            budget_usd: ladder.role.budget_usd,
            tools: ladder.role.tools.clone(),
            output: ladder.role.output,
            work_tree: self.prepared.work_tree.clone(),
            home: homes.role_home(ladder.owner),
            env: homes.agent_env(ladder.owner, ladder.role),
            remove_at_end,
            confinement: Confinement::None,
        })
    }

    /// Counts what a send used before anything else is looked at.
    fn account(&mut self, ladder: &Ladder<'_>, report: &SendReport) {
        let started = !matches!(report.end, SendEnd::NotStarted { .. });
        if let Some(open) = self.state.open.as_mut() {
            open.sending = false;
            if started {
                open.meter.count(report.usage.as_ref());
            }
        }
        if started {
            self.state.meter.count(report.usage.as_ref());
        } else {
            self.sends.give_back();
        }
        self.tell_leftovers(ladder.name(), &report.leftovers, &report.survivors);
        if !report.not_removed.is_empty() {
            self.remove_login(ladder);
        }
    }

    /// The supervisor could not remove the copied login; nothing of the role
    /// runs any more, so that it can be removed from here.
    fn remove_login(&self, ladder: &Ladder<'_>) {
        if let Err(error) = self.prepared.homes.remove_seed(ladder.owner) {
            self.trace.emit(
                Some(ladder.name()),
                &EventBody::EngineError(EngineError {
                    error: text::with_causes(&error),
                }),
            );
        }
    }

    /// What a send's end means for the entry.
    fn classify(&mut self, ladder: &Ladder<'_>, prompt: &str, end: SendEnd) -> Sent {
        match end {
            SendEnd::Answered { text } => {
                let attempt = self.attempt_id.clone();
                self.state
                    .session(&attempt, ladder.owner)
                    .transcript
                    .push(Exchange {
                        prompt: prompt.to_owned(),
                        response: text.clone(),
                    });
                Sent::Answered(text)
            }
            SendEnd::Failed {
                class,
                message,
                hint,
                exit_code,
                ..
            } => {
                let exit = exit_code.map_or_else(String::new, |code| format!(" (exit {code})"));
                let hint = hint.map_or_else(String::new, |hint| format!("; {hint}"));
                let error = format!("{message}{exit}{hint}");
                failed(ladder.name(), class, error)
            }
            SendEnd::Stopped(stopped) => {
                let reason = match stopped {
                    Stopped::Silence => StopReason::Silence,
                    Stopped::PhaseClock => StopReason::PhaseTimeout,
                    Stopped::Ceiling => StopReason::Ceiling,
                    Stopped::Cancelled => StopReason::Cancelled,
                    Stopped::Group => StopReason::GroupStop,
                };
                Self::stopped(ladder, reason, "during a send")
            }
            SendEnd::NotStarted { class, message } => {
                let error = format!(
                    "the agent of phase {} could not be started: {message}",
                    ladder.name()
                );
                let ending = if class.is_fatal() {
                    Ending::failed(class.into(), error)
                } else {
                    Ending::infrastructure(error)
                };
                Sent::ended(ending, Some(class))
            }
        }
    }

    fn spend_ceiling(&self, budget_usd: f64, phase: &str) -> Ending {
        Ending {
            end: AttemptEnd::SpendCeiling,
            cause: Cause::SpendCeiling,
            error: format!(
                "the attempt's budget of {budget_usd} USD is spent ({} USD) before a send of phase {phase}",
                self.state.meter.spend.cost_usd
            ),
        }
    }

    fn send_budget(&self, phase: &str) -> Ending {
        Ending {
            end: AttemptEnd::SendBudget,
            cause: Cause::SendBudget,
            error: format!(
                "the attempt's {} sends are used up before a send of phase {phase}",
                self.sends.most()
            ),
        }
    }
}

/// What a failure of the agent's own means, by its class.
fn failed(phase: &str, class: FailureClass, error: String) -> Sent {
    if class.is_fatal() {
        return Sent::ended(
            Ending::failed(
                class.into(),
                format!(
                    "the agent of phase {phase} cannot go on ({}): {error}",
                    class.as_str()
                ),
            ),
            Some(class),
        );
    }
    if class.is_death() {
        return Sent::Ended(Close::Died { class, error });
    }
    Sent::Ended(Close::Failed {
        failure: Failure {
            cause: class.into(),
            error: format!(
                "the agent of phase {phase} failed ({}): {error}",
                class.as_str()
            ),
        },
        class: Some(class),
    })
}
