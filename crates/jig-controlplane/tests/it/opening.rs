//! Opening: by many at once, at every mode, and the refusals.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use jig_controlplane::Store;
use jig_controlplane::direct;
use jig_controlplane::store::{OpenError, OpenOptions};
use jig_protocol::lifecycle::{AttemptState, Outcome};
use tokio_util::sync::CancellationToken;

use crate::support::{
    CountingRandom, Scripted, TestClock, Then, child, markers, open, request, told,
};

async fn try_open(data: &Path) -> Result<Store, OpenError> {
    Store::open(data, TestClock::real(), &OpenOptions::default()).await
}

/// What a child does: opens the store and runs once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_opens_and_runs() {
    let Some(data) = told("JIG_TEST_DATA") else {
        return;
    };
    let store = open(data.as_ref()).await;
    let executor = Scripted::new(1, Then::End(Outcome::AcceptedUnpublished));
    let random = CountingRandom::default();
    let outcome = direct::run(
        &store,
        &random,
        request("file:///r"),
        executor,
        CancellationToken::new(),
    )
    .await
    .unwrap();
    assert_eq!(outcome.not_recorded, None);
    assert_eq!(outcome.state, AttemptState::AcceptedUnpublished);
    store.close().await;
}

#[test]
fn two_processes_open_a_missing_data_directory_at_once() {
    for round in 0..20 {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("not/yet/there");
        let told = [("JIG_TEST_DATA", data.display().to_string())];
        let children: Vec<_> = (0..2)
            .map(|_| {
                child("opening::child_opens_and_runs", &told)
                    .spawn()
                    .unwrap()
            })
            .collect();
        for child in children {
            let output = child.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "round {round}: {said}");
        }
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let store = open(&data).await;
            let attempts = store.newest_attempts(10).await.unwrap();
            let states: Vec<_> = attempts.iter().map(|attempt| attempt.state).collect();
            assert_eq!(
                states,
                [AttemptState::AcceptedUnpublished; 2],
                "round {round}"
            );
        });
        assert_eq!(markers(&data), Vec::<std::path::PathBuf>::new());
    }
}

#[tokio::test]
async fn everything_it_makes_is_private() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let store = open(&data).await;
    let random = CountingRandom::default();
    let executor = Scripted::new(1, Then::End(Outcome::Failed));
    let run = direct::run(
        &store,
        &random,
        request("r"),
        executor,
        CancellationToken::new(),
    );
    run.await.unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for made in ["", "attempts", "runs"] {
        assert_eq!(mode(&data.join(made)), 0o700, "{made}");
    }
    for made in ["jig.db", "jig.db-wal", "jig.db-shm", "jig.db.lock"] {
        assert_eq!(mode(&data.join(made)), 0o600, "{made}");
    }
}

#[tokio::test]
async fn a_database_that_others_could_read_is_made_private() {
    let dir = tempfile::tempdir().unwrap();
    open(dir.path()).await.close().await;
    let database = dir.path().join("jig.db");
    fs::set_permissions(&database, fs::Permissions::from_mode(0o644)).unwrap();
    open(dir.path()).await.close().await;
    assert_eq!(
        fs::metadata(&database).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[tokio::test]
async fn a_directory_that_everyone_may_write_is_refused_untouched() {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let refused = try_open(dir.path()).await.unwrap_err();
    assert!(
        matches!(refused, OpenError::WorldWritable { .. }),
        "{refused}"
    );
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_link_in_place_of_the_database_is_refused_and_its_target_untouched() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("precious");
    fs::write(&target, "precious").unwrap();
    let data = dir.path().join("data");
    fs::create_dir(&data).unwrap();
    std::os::unix::fs::symlink(&target, data.join("jig.db")).unwrap();
    let refused = try_open(&data).await.unwrap_err();
    assert!(matches!(refused, OpenError::Io { .. }), "{refused}");
    assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_untouched() {
    let dir = tempfile::tempdir().unwrap();
    let database = dir.path().join("jig.db");
    let garbage = "no database, ".repeat(1_000);
    fs::write(&database, &garbage).unwrap();
    let refused = try_open(dir.path()).await.unwrap_err();
    assert!(matches!(refused, OpenError::Database { .. }), "{refused}");
    assert_eq!(fs::read_to_string(&database).unwrap(), garbage);
}

async fn change(data: &Path, sql: &'static str) {
    use sqlx::Connection as _;
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(data.join("jig.db"));
    let mut db = sqlx::SqliteConnection::connect_with(&options)
        .await
        .unwrap();
    sqlx::query(sql).execute(&mut db).await.unwrap();
    db.close().await.unwrap();
}

#[tokio::test]
async fn a_newer_database_is_refused_by_its_version() {
    let dir = tempfile::tempdir().unwrap();
    open(dir.path()).await.close().await;
    let newer =
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
                 VALUES (99, 'later', TRUE, x'00', 0)";
    change(dir.path(), newer).await;
    let refused = try_open(dir.path()).await.unwrap_err();
    let OpenError::NewerDatabase { found, known, .. } = &refused else {
        panic!("{refused}");
    };
    assert_eq!((*found, *known), (99, 1));
    assert!(refused.to_string().contains("newer jig"), "{refused}");
    // The same answer again: nothing was changed.
    let again = try_open(dir.path()).await.unwrap_err();
    assert_eq!(again.to_string(), refused.to_string());
}

#[tokio::test]
async fn a_migration_that_was_edited_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    open(dir.path()).await.close().await;
    change(
        dir.path(),
        "UPDATE _sqlx_migrations SET checksum = x'00' WHERE version = 1",
    )
    .await;
    let refused = try_open(dir.path()).await.unwrap_err();
    assert!(matches!(refused, OpenError::Migration { .. }), "{refused}");
}

#[tokio::test]
async fn opening_again_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    for _ in 0..3 {
        let store = open(dir.path()).await;
        assert_eq!(store.newest_attempts(1).await.unwrap(), []);
        store.close().await;
    }
}

#[tokio::test]
async fn someone_who_never_finishes_opening_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let lock = dir.path().join("jig.db.lock");
    let held = fs::File::create(&lock).unwrap();
    held.lock().unwrap();
    let clock: Arc<_> = TestClock::faster(10_000);
    let refused = Store::open(dir.path(), clock, &OpenOptions::default())
        .await
        .unwrap_err();
    assert!(matches!(&refused, OpenError::Locked { path, .. } if path.ends_with("jig.db.lock")));
    assert!(!dir.path().join("jig.db").exists());
}
