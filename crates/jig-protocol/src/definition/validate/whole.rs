//! The order in which everything is judged.

use super::super::cursor::Context;
use super::super::decode::Draft;
use super::{chain, edges, group, policy, prompts, writers};

/// Judges a draft as a whole.
pub(in super::super) fn check(cx: &mut Context<'_>, draft: &Draft) {
    let chain = chain::Chain::new(draft);
    chain::names(cx, draft);
    chain::owners(cx, draft);
    chain::runtimes(cx, draft);
    prompts::check(cx, draft);
    edges::check(cx, draft, &chain);
    group::check(cx, draft, &chain);
    writers::check(cx, draft, &chain);
    policy::acceptance(cx, draft, &chain);
    policy::ci(cx, draft, &chain);
}
