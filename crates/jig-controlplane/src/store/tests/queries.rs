//! The queries that must stay quick however much is stored.

use sqlx::Row as _;

use super::support::open;
use crate::store::{Store, jobs};

/// How SQLite would go about it.
async fn plan(store: &Store, query: &str, binds: usize) -> Vec<String> {
    let explain = format!("EXPLAIN QUERY PLAN {query}");
    let mut query = sqlx::query(sqlx::AssertSqlSafe(explain));
    for _ in 0..binds {
        query = query.bind("1");
    }
    let rows = query.fetch_all(&store.readers).await.unwrap();
    rows.iter().map(|row| row.get("detail")).collect()
}

#[tokio::test]
async fn a_claim_walks_the_queue_by_its_index() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let plan = plan(&store, jobs::NEXT_FOR, 2).await;
    assert!(
        plan.iter()
            .any(|step| step.starts_with("SEARCH jobs USING INDEX jobs_claim_order (state=?")),
        "{plan:#?}"
    );
    for step in &plan {
        assert!(
            !step.starts_with("SCAN"),
            "a whole table is read: {plan:#?}"
        );
        assert!(
            !step.contains("TEMP B-TREE"),
            "the queue is sorted: {plan:#?}"
        );
    }
}

#[tokio::test]
async fn what_is_asked_often_is_found_by_an_index() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    for query in [
        "SELECT body FROM events WHERE attempt_id = $1 AND seq > $1 ORDER BY seq LIMIT 10",
        "SELECT * FROM leases WHERE state IN ('held', 'missed')",
        "SELECT * FROM runs WHERE state = 'active'",
        "SELECT * FROM attempts WHERE job_id = $1 ORDER BY number",
        "SELECT * FROM attempts WHERE id >= $1 AND id < $1 ORDER BY id LIMIT 2",
        "SELECT * FROM jobs WHERE run_id = $1",
        "SELECT * FROM gate_results WHERE attempt_id = $1 ORDER BY seq, item_number",
    ] {
        let plan = plan(&store, query, query.matches("$1").count()).await;
        let searched = plan
            .iter()
            .all(|step| step.starts_with("SEARCH") || step.contains("B-TREE"));
        assert!(searched, "{query}: {plan:#?}");
    }
}
