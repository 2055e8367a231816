//! The operator's toolchains under a HOME that is not the operator's, and
//! downloads that are made once.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use crate::fixture::{Attempt, Fixture};
use crate::home::{command, printed};

/// A server of a few files on loopback that remembers what was asked for.
struct Server {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

type Files = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

impl Server {
    fn start() -> (Self, Files) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let files: Files = Arc::default();
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let (serving, log) = (Arc::clone(&files), Arc::clone(&asked));
        // Ends with the test's process; nothing is left to join but a read.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (files, log) = (Arc::clone(&serving), Arc::clone(&log));
                std::thread::spawn(move || drop(answer(stream, &files, &log)));
            }
        });
        (Self { port, asked }, files)
    }

    /// Downloads of this path so far.
    fn downloads(&self, path: &str) -> usize {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|asked| asked.as_str() == path).count()
    }
}

fn answer(stream: TcpStream, files: &Files, log: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut request = String::new();
    reader.read_line(&mut request)?;
    let mut header = String::new();
    while reader.read_line(&mut header)? > 2 {
        header.clear();
    }
    let path = request.split(' ').nth(1).unwrap_or("/").to_owned();
    log.lock().unwrap().push(path.clone());
    let found = files.lock().unwrap().get(&path).cloned();
    let (status, body) = match found {
        Some(body) => ("200 OK", body),
        None => ("404 Not Found", Vec::new()),
    };
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nDate: {}\r\n\
         Cache-Control: max-age=100000\r\nContent-Type: application/octet-stream\r\nConnection: close\r\n\r\n",
        body.len(),
        http_date()
    )?;
    stream.write_all(&body)
}

/// Now, as a header says it: without it nothing is kept.
fn http_date() -> String {
    let date = Command::new("date")
        .args(["-u", "+%a, %d %b %Y %H:%M:%S GMT"])
        .env("LC_ALL", "C")
        .output()
        .unwrap();
    String::from_utf8(date.stdout).unwrap().trim().to_owned()
}

/// The environment that the tests themselves run in, as an operator's.
fn real_operator(fixture: &mut Fixture) {
    let env: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    let Some(home) = env.get(std::ffi::OsStr::new("HOME")) else {
        return;
    };
    fixture.config.operator.home = PathBuf::from(home);
    fixture.config.operator.env = env;
}

fn has(program: &str, args: &[&str]) -> bool {
    Command::new(program)
        .args(args)
        .output()
        .is_ok_and(|output| output.status.success())
}

fn skip(what: &str, why: &str) {
    // A test that skips says so where the runner shows it.
    let mut err = std::io::stderr();
    let _ = writeln!(err, "skipped: {what}: {why}");
}

/// Two attempts on one repository; the second finds what the first downloaded.
async fn twice(fixture: &Fixture, line: &str) -> [String; 2] {
    let mut shown = [String::new(), String::new()];
    for shown in &mut shown {
        let attempt: Attempt = fixture.attempt().await;
        let outcome = command(fixture, &attempt, None, line).await;
        *shown = printed(&outcome).to_owned();
        crate::host::dispose::forget(fixture, &attempt.prepared).await;
    }
    shown
}

#[tokio::test(flavor = "multi_thread")]
async fn cargo_tests_run_and_a_crate_is_downloaded_once() {
    if !has("cargo", &["--version"]) {
        return skip("cargo test", "there is no cargo on PATH");
    }
    let (server, files) = Server::start();
    let index = format!("sparse+http://127.0.0.1:{}/index/", server.port);
    let manifest = format!(
        "[package]\nname = \"sample\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\
         [dependencies]\nadder = {{ version = \"1.0.0\", registry-index = \"{index}\" }}\n[workspace]\n"
    );
    let mut fixture = Fixture::new(&[
        ("Cargo.toml", &manifest),
        (
            "src/lib.rs",
            "#[test]\nfn adds() { assert_eq!(adder::add(2, 2), 4); }\n",
        ),
        (".gitignore", "target/\n"),
    ])
    .supervised();
    real_operator(&mut fixture);
    serve_crate(fixture.repo.scratch(), server.port, &files);
    let shown = twice(&fixture, "cargo test 2>&1").await;
    assert!(
        shown.iter().all(|shown| shown.contains("test adds ... ok")),
        "{shown:?}"
    );
    assert_eq!(server.downloads("/crates/adder-1.0.0.crate"), 1);
}

/// Packages a crate and serves it as a registry of one.
fn serve_crate(scratch: &Path, port: u16, files: &Files) {
    let dir = scratch.join("adder");
    std::fs::create_dir_all(dir.join("src")).unwrap();
    let manifest = "[package]\nname = \"adder\"\nversion = \"1.0.0\"\nedition = \"2021\"\n\
        description = \"x\"\nlicense = \"MIT\"\n[workspace]\n";
    std::fs::write(dir.join("Cargo.toml"), manifest).unwrap();
    let source = "pub fn add(a: u32, b: u32) -> u32 { a + b }\n";
    std::fs::write(dir.join("src/lib.rs"), source).unwrap();
    let packaged = Command::new("cargo")
        .args([
            "package",
            "--quiet",
            "--offline",
            "--no-verify",
            "--allow-dirty",
        ])
        .env("CARGO_TARGET_DIR", dir.join("target"))
        .current_dir(&dir)
        .output()
        .unwrap();
    assert!(
        packaged.status.success(),
        "{}",
        String::from_utf8_lossy(&packaged.stderr)
    );
    let bytes = std::fs::read(dir.join("target/package/adder-1.0.0.crate")).unwrap();
    let sum = Command::new("sha256sum")
        .arg(dir.join("target/package/adder-1.0.0.crate"))
        .output()
        .unwrap();
    let sum = String::from_utf8(sum.stdout).unwrap();
    let sum = sum.split(' ').next().unwrap();
    let line = format!(
        r#"{{"name":"adder","vers":"1.0.0","deps":[],"cksum":"{sum}","features":{{}},"yanked":false}}"#
    );
    let config =
        format!(r#"{{"dl":"http://127.0.0.1:{port}/crates/{{crate}}-{{version}}.crate"}}"#);
    let mut files = files.lock().unwrap();
    files.insert("/index/config.json".into(), config.into_bytes());
    files.insert("/index/ad/de/adder".into(), line.into_bytes());
    files.insert("/crates/adder-1.0.0.crate".into(), bytes);
}

#[tokio::test(flavor = "multi_thread")]
async fn npm_tests_run_and_a_package_is_downloaded_once() {
    if !has("npm", &["--version"]) {
        return skip("npm test", "there is no npm on PATH");
    }
    let (server, files) = Server::start();
    let url = format!("http://127.0.0.1:{}/adder-1.0.0.tgz", server.port);
    let manifest = format!(
        r#"{{"name":"sample","version":"1.0.0","private":true,
            "dependencies":{{"adder":"{url}"}},"scripts":{{"test":"node test.js"}}}}"#
    );
    let mut fixture = Fixture::new(&[
        ("package.json", &manifest),
        (
            "test.js",
            "if (require('adder')(2, 2) !== 4) process.exit(1); console.log('adds');\n",
        ),
        (".gitignore", "node_modules/\n"),
    ])
    .supervised();
    real_operator(&mut fixture);
    let dir = fixture.repo.scratch().join("adder");
    std::fs::create_dir(&dir).unwrap();
    std::fs::write(
        dir.join("package.json"),
        r#"{"name":"adder","version":"1.0.0","main":"i.js"}"#,
    )
    .unwrap();
    std::fs::write(dir.join("i.js"), "module.exports = (a, b) => a + b;\n").unwrap();
    let packed = Command::new("npm")
        .args(["pack", "--silent"])
        .current_dir(&dir)
        .output()
        .unwrap();
    assert!(
        packed.status.success(),
        "{}",
        String::from_utf8_lossy(&packed.stderr)
    );
    let bytes = std::fs::read(dir.join("adder-1.0.0.tgz")).unwrap();
    files
        .lock()
        .unwrap()
        .insert("/adder-1.0.0.tgz".into(), bytes);
    let shown = twice(
        &fixture,
        "npm install --no-audit --no-fund --prefer-offline 2>&1 && npm test 2>&1",
    )
    .await;
    assert!(
        shown.iter().all(|shown| shown.contains("adds")),
        "{shown:?}"
    );
    assert_eq!(server.downloads("/adder-1.0.0.tgz"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn python_runs_and_a_wheel_is_downloaded_once() {
    if !has("python3", &["-m", "pip", "--version"]) {
        return skip("pip", "there is no python3 with pip on PATH");
    }
    let (server, files) = Server::start();
    let mut fixture = Fixture::new(&[
        (
            "test_sample.py",
            "def test_adds():\n    assert 2 + 2 == 4\n",
        ),
        (".gitignore", "wheels/\n__pycache__/\n.pytest_cache/\n"),
    ])
    .supervised();
    real_operator(&mut fixture);
    let wheel = "/adder-1.0.0-py3-none-any.whl";
    let path = fixture.repo.scratch().join("adder-1.0.0-py3-none-any.whl");
    let script = "import sys, zipfile\n\
        z = zipfile.ZipFile(sys.argv[1], 'w')\n\
        z.writestr('adder.py', 'def add(a, b): return a + b\\n')\n\
        d = 'adder-1.0.0.dist-info/'\n\
        z.writestr(d + 'METADATA', 'Metadata-Version: 2.1\\nName: adder\\nVersion: 1.0.0\\n')\n\
        z.writestr(d + 'WHEEL', 'Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n\
        z.writestr(d + 'RECORD', '')\n\
        z.close()\n";
    let made = Command::new("python3")
        .args(["-c", script])
        .arg(&path)
        .output()
        .unwrap();
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    files
        .lock()
        .unwrap()
        .insert(wheel.into(), std::fs::read(&path).unwrap());
    let line = format!(
        "python3 -m pip download --quiet --no-deps --no-index --trusted-host 127.0.0.1:{0} -d wheels \
         http://127.0.0.1:{0}{wheel} 2>&1 && \
         PYTHONPATH=$(echo wheels/*.whl) python3 -c 'import adder; print(adder.add(2, 2))'",
        server.port
    );
    let shown = twice(&fixture, &line).await;
    assert!(
        shown.iter().all(|shown| shown.trim_end().ends_with('4')),
        "{shown:?}"
    );
    assert_eq!(server.downloads(wheel), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn pytest_runs_under_the_ephemeral_home() {
    if !has("python3", &["-m", "pytest", "--version"]) {
        return skip("pytest", "python3 has no pytest");
    }
    let mut fixture = Fixture::new(&[
        (
            "test_sample.py",
            "def test_adds():\n    assert 2 + 2 == 4\n",
        ),
        (".gitignore", "__pycache__/\n.pytest_cache/\n"),
    ])
    .supervised();
    real_operator(&mut fixture);
    let attempt = fixture.attempt().await;
    let outcome = command(&fixture, &attempt, None, "python3 -m pytest -q 2>&1").await;
    assert!(printed(&outcome).contains("1 passed"), "{outcome:?}");
}
