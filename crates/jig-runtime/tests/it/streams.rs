//! Streams: back-pressure, long lines, input.

use jig_protocol::limits;
use jig_runtime::{Program, SendEnd};

use crate::bench::{Bench, Words, is_alive};

const MANY: &str =
    "echo $$ > pid; i=0; while [ $i -lt 400 ]; do echo text $i; i=$((i+1)); done; echo result yes";

#[tokio::test]
async fn a_consumer_that_comes_late_misses_nothing() {
    let bench = Bench::new();
    let running = bench.start(MANY);
    bench.wait_for_file("pid").await;
    let pid = bench.tree().join("pid");
    jig_testkit::wait_until_async("the agent's end", || {
        std::fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n')) && !is_alive(&pid)
    })
    .await;
    assert!(
        !running.task.is_finished(),
        "back-pressure holds the report"
    );
    let done = running.done().await;
    let expected: Vec<String> = (0..400).map(|i| i.to_string()).collect();
    assert_eq!(done.texts(), expected);
    assert_eq!(done.report.end, SendEnd::Answered { text: "yes".into() });
}

#[tokio::test]
async fn a_consumer_that_is_gone_holds_nothing_up() {
    let mut bench = Bench::new();
    bench.capacity = 1;
    let mut running = bench.start(MANY);
    running.events.close();
    assert_eq!(
        running.done().await.report.end,
        SendEnd::Answered { text: "yes".into() }
    );
}

#[tokio::test]
async fn a_flood_is_held_up_by_its_consumer_and_not_kept_in_memory() {
    let mut bench = Bench::new();
    bench.capacity = 1;
    // Without back-pressure this would count up to the end.
    let script = "i=0; while [ $i -lt 200000 ]; do echo text $i-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; i=$((i+1)); echo $i > count; done; echo result yes";
    let running = bench.start(script);
    bench.wait_for_file("count").await;
    let count = || std::fs::read_to_string(bench.tree().join("count")).unwrap_or_default();
    let mut before = String::new();
    jig_testkit::wait_until_async("the flood to stand still", || {
        std::thread::sleep(std::time::Duration::from_millis(50));
        let now = count();
        let stands = !now.is_empty() && now == before;
        before = now;
        stands
    })
    .await;
    let reached: u32 = before.trim().parse().unwrap();
    assert!(
        reached < 100_000,
        "{reached} lines were taken without a consumer"
    );
    running.task.abort();
}

#[tokio::test]
async fn odd_lines_are_told_and_the_answer_survives_them() {
    let script = format!(
        "head -c {} /dev/zero | tr '\\0' x; echo; echo 'what is this'; printf 'result yes'",
        limits::STREAM_LINE_BYTES + 1
    );
    let done = Bench::new().run(&script).await;
    assert_eq!(done.report.end, SendEnd::Answered { text: "yes".into() });
    assert_eq!(done.logs("unparsed_line"), ["what is this"]);
    assert_eq!(done.logs("line_truncated").len(), 1);
}

#[tokio::test]
async fn a_large_prompt_arrives_whole_and_an_unread_one_is_no_error() {
    let mut bench = Bench::new();
    bench.stdin = "0123456789".repeat(30_000).into_bytes();
    let done = bench.run("cat > got; echo result yes").await;
    assert_eq!(done.report.end, SendEnd::Answered { text: "yes".into() });
    assert_eq!(
        std::fs::read(bench.tree().join("got")).unwrap(),
        bench.stdin
    );
    let done = bench.run("exec <&-; echo result yes").await;
    assert_eq!(done.report.end, SendEnd::Answered { text: "yes".into() });
}

#[tokio::test]
async fn replies_go_to_a_stdin_that_stays_open() {
    let mut bench = Bench::new();
    bench.stdin = b"prompt\n".to_vec();
    bench.keep_stdin = true;
    let words = Words::replying("word");
    let script =
        "read prompt; echo ask; read one; echo ask; read two; echo result $prompt $one $two";
    let done = bench
        .start_program(Program::Shell(script.into()), words)
        .done()
        .await;
    assert_eq!(
        done.report.end,
        SendEnd::Answered {
            text: "prompt word word".into()
        }
    );
}

#[tokio::test]
async fn what_is_written_arrives_in_order_and_then_stdin_closes() {
    let mut bench = Bench::new();
    bench.stdin = b"0\n".to_vec();
    bench.keep_stdin = true;
    // The second `cat` would wait for ever on a stdin that stays open.
    let script = "echo write 1; echo write 2; read a; read b; read c; \
        echo write 3; echo shut; echo result $a $b $c $(cat)";
    let done = bench.run(script).await;
    assert_eq!(
        done.report.end,
        SendEnd::Answered {
            text: "0 1 2 3".into()
        }
    );
}
