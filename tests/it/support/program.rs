//! The real binary, started in a folder of its own.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// A time limit against hangs; nothing here takes a tenth of it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A working folder for the program, with no other environment.
pub(crate) struct Place {
    folder: TempDir,
    variables: Vec<(&'static str, String)>,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), variables: Vec::new() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn file(self, name: &str, text: &str) -> Self {
        std::fs::write(self.path().join(name), text).unwrap();
        self
    }

    pub(crate) fn variable(mut self, name: &'static str, value: &str) -> Self {
        self.variables.push((name, value.to_owned()));
        self
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_blotter"));
        command.args(args).current_dir(self.path()).env_clear().stdin(Stdio::null());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Self::ran(self.command(args))
    }

    /// The same, asked to end after so many seconds.
    #[cfg(unix)]
    pub(crate) fn run_within(&self, seconds: u64, args: &[&str]) -> Ran {
        let mut command = Command::new("timeout");
        command.args(["-s", "TERM", &seconds.to_string(), env!("CARGO_BIN_EXE_blotter")]);
        command.args(args).current_dir(self.path()).env_clear().stdin(Stdio::null());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        Self::ran(command)
    }

    fn ran(mut command: Command) -> Ran {
        let output = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    pub(crate) fn serve(&self, args: &[&str]) -> Server {
        self.serve_by(self.command(args), args[0])
    }

    /// With files of at most so many blocks of 512 bytes, as on a disk that is full.
    #[cfg(unix)]
    pub(crate) fn serve_within(&self, blocks: u64, args: &[&str]) -> Server {
        let mut command = Command::new("sh");
        let script = "ulimit -f \"$0\"; exec \"$@\"";
        command.args(["-c", script, &blocks.to_string(), env!("CARGO_BIN_EXE_blotter")]).args(args);
        command.current_dir(self.path()).env_clear().stdin(Stdio::null());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        self.serve_by(command, args[0])
    }

    /// What the last server of that name has logged.
    pub(crate) fn log(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(format!("stderr-{name}"))).unwrap()
    }

    pub(crate) fn serve_by(&self, mut command: Command, name: &str) -> Server {
        let log = self.path().join(format!("stderr-{name}"));
        let stderr = std::fs::File::create(&log).unwrap();
        let mut child = command.stdout(Stdio::piped()).stderr(stderr).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let stderr = std::fs::read_to_string(&log).unwrap();
        let address = line.trim().strip_prefix("listening on http://");
        let address = address.unwrap_or_else(|| panic!("it does not listen: {line}{stderr}"));
        Server { child, stdout, address: address.to_owned(), stderr }
    }
}

/// A running server; dropping it ends it.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) stdout: BufReader<ChildStdout>,
    pub(crate) address: String,
    /// What it said before it listened.
    pub(crate) stderr: String,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Server {
    pub(crate) fn get(&self, path: &str, key: &str) -> Answer {
        self.send("GET", path, &format!("Authorization: Bearer {key}\r\n"))
    }

    pub(crate) fn send(&self, method: &str, path: &str, headers: &str) -> Answer {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{headers}\r\n",
            self.address
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
        let body = if chunked { unchunked(body) } else { body.to_owned() };
        Answer { status, head: head.to_owned(), body }
    }

    /// The word that follows `before` on stderr.
    pub(crate) fn printed(&self, before: &str) -> String {
        let mut words = self.stderr.split_whitespace().skip_while(|word| *word != before).skip(1);
        words.next().unwrap().to_owned()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Asks until the answer has this status.
    pub(crate) fn get_until(&self, status: u16, path: &str, key: &str) {
        let started = Instant::now();
        while self.get(path, key).status != status {
            assert!(started.elapsed() < PATIENCE, "{path} never answered {status}");
        }
    }

    #[cfg(unix)]
    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    /// The exit code; panics where the program does not end in time.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        // What it still prints must not fill the pipe.
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The body of a chunked answer; panics where it was cut short.
pub(crate) fn unchunked(mut body: &str) -> String {
    let mut text = String::new();
    loop {
        let (size, rest) = body.split_once("\r\n").unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            return text;
        }
        text.push_str(&rest[..size]);
        body = rest[size..].strip_prefix("\r\n").unwrap();
    }
}
