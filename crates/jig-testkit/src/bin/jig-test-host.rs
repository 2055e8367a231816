//! The program tests use as host of the hidden modes.

fn main() {
    jig_process::supervisor_main();
    jig_runtime_scripted::scripted_agent_main();
}
