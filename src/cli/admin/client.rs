//! The client side of the admin socket.

use std::io::{self, BufRead as _, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::Value;

use super::{AdminRequest, AdminResponse, SOCKET_NAME};
use crate::cli::args::{AdminArgs, AdminCommand};
use crate::cli::config::Config;
use crate::cli::errors::CliError;
use crate::cli::reading::parse_address;
use crate::cli::table::format;
use crate::cli::{keys, runtime};
use crate::registry::Registry;

pub(in crate::cli) fn run(
    args: &AdminArgs,
    config: &Config,
    registry: &Registry,
    out: &mut dyn Write,
) -> Result<(), CliError> {
    let folder = &config.storage.path;
    let request = match &args.command {
        AdminCommand::Backup(backup) => {
            // The server's working directory may be another one.
            let path = std::path::absolute(&backup.path);
            AdminRequest::Backup { path: path.map_err(CliError::file("find", &backup.path))? }
        }
        AdminCommand::Forget(forget) => {
            let (chain, address) = (forget.chain.clone(), forget.address.clone());
            // A chain that only the server's own configuration has is left to the server.
            if let Some(chain) = registry.chain_named(&chain) {
                parse_address(chain, &address)?;
            }
            AdminRequest::Forget { chain, address }
        }
        AdminCommand::Compact => AdminRequest::Compact,
        AdminCommand::Keys(keys) => {
            // The keys are changed and shown first, so a new key is shown even if no server runs.
            runtime()?.block_on(keys::run(&keys.command, config, registry, out))?;
            return ask(folder, &AdminRequest::Keys).map(drop);
        }
        AdminCommand::Status => AdminRequest::Status,
        AdminCommand::Loads => AdminRequest::Loads,
        AdminCommand::Pause => AdminRequest::Pause,
        AdminCommand::Resume => AdminRequest::Resume,
        AdminCommand::Reload => AdminRequest::Reload,
    };
    let answer = ask(folder, &request)?;
    let text = if args.json { format!("{answer}\n") } else { render(&request, &answer) };
    out.write_all(text.as_bytes()).map_err(CliError::Output)
}

fn ask(folder: &Path, request: &AdminRequest) -> Result<Value, CliError> {
    let path = folder.join(SOCKET_NAME);
    let stream = UnixStream::connect(&path).map_err(|error| unreachable(&path, error))?;
    let broken = |error| CliError::failed("the server ended before it answered", error);
    let line = exchange(stream, request).map_err(broken)?;
    match serde_json::from_str(&line) {
        Ok(AdminResponse::Ok(value)) => Ok(value),
        Ok(AdminResponse::Error(text)) => Err(CliError::plain(text)),
        Err(error) => Err(CliError::failed("the server gave no answer", error)),
    }
}

fn exchange(mut stream: UnixStream, request: &AdminRequest) -> io::Result<String> {
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    Ok(answer)
}

fn unreachable(path: &Path, error: io::Error) -> CliError {
    use io::ErrorKind::{ConnectionRefused, NotFound, PermissionDenied};
    let (path, kind) = (path.display(), error.kind());
    let what = if matches!(kind, NotFound | ConnectionRefused) {
        format!("no server answers at {path}: name its data folder with --data-dir")
    } else if kind == PermissionDenied {
        format!("{path} is for the user that runs the server")
    } else {
        format!("{path} cannot be asked")
    };
    CliError::failed(what, error)
}

fn render(request: &AdminRequest, answer: &Value) -> String {
    let number = |name: &str| answer.get(name).and_then(Value::as_u64);
    match request {
        AdminRequest::Backup { path } => {
            let (bytes, path) = (number("bytes").unwrap_or_default(), path.display());
            format!("copied {bytes} bytes to {path}; `--data-dir {path}` opens it\n")
        }
        AdminRequest::Forget { chain, address } => match number("rows") {
            Some(rows) => format!("forgot {address} on {chain} with {rows} rows\n"),
            None => format!("nothing is stored of {address} on {chain}\n"),
        },
        AdminRequest::Compact => {
            let (before, after) = (number("before"), number("after"));
            let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
            format!("{before} bytes before, {after} after\n")
        }
        AdminRequest::Pause => "background work is paused\n".to_owned(),
        AdminRequest::Resume => "background work goes on\n".to_owned(),
        AdminRequest::Reload => {
            let names = |name: &str| -> Vec<&str> {
                let names = answer.get(name).and_then(Value::as_array).into_iter().flatten();
                names.filter_map(Value::as_str).collect()
            };
            let line = |what: &str, names: Vec<&str>| match names.as_slice() {
                [] => String::new(),
                names => format!("{what}: {}\n", names.join(", ")),
            };
            let (changed, restart) = (names("changed"), names("restart"));
            if changed.is_empty() && restart.is_empty() {
                return "nothing has changed\n".to_owned();
            }
            line("in force", changed) + &line("needs a restart", restart)
        }
        AdminRequest::Loads => loads(answer),
        AdminRequest::Status | AdminRequest::Keys => lines("", answer),
    }
}

fn loads(answer: &Value) -> String {
    let cell = |load: &Value, name: &str| match load.get(name) {
        None | Some(Value::Null) => "-".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            parts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",")
        }
        Some(value) => value.to_string(),
    };
    let columns = [
        ("CHAIN", "chain"),
        ("WALLET", "wallet"),
        (">READERS", "readers"),
        ("BACKGROUND", "background"),
        (">TRADES", "trades"),
        ("COMPLETE", "complete"),
        ("REACHED", "reachedTime"),
        ("ENDPOINTS", "endpoints"),
        ("LAST ERROR", "lastError"),
    ];
    let rows = answer.as_array().into_iter().flatten();
    let rows: Vec<Vec<String>> =
        rows.map(|load| columns.iter().map(|(_, name)| cell(load, name)).collect()).collect();
    format(&columns.map(|(head, _)| head), &rows)
}

/// One line for each value, led by its path.
fn lines(path: &str, value: &Value) -> String {
    let below = |name: &str| {
        if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
    };
    match value {
        Value::Object(parts) => {
            parts.iter().map(|(name, part)| lines(&below(name), part)).collect()
        }
        Value::Array(parts) => parts
            .iter()
            .enumerate()
            .map(|(at, part)| lines(&below(&at.to_string()), part))
            .collect(),
        Value::Null if path.is_empty() => String::new(),
        Value::String(text) => format!("{path}  {text}\n"),
        Value::Null => format!("{path}  -\n"),
        Value::Bool(_) | Value::Number(_) => format!("{path}  {value}\n"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_are_shown_in_lines() {
        let status = json!({"a": {"b": 1, "c": null}, "d": ["x"]});
        assert_eq!(render(&AdminRequest::Status, &status), "a.b  1\na.c  -\nd.0  x\n");
        let reloaded = json!({"changed": ["server.page_wait"], "restart": ["server.listen"]});
        let text = "in force: server.page_wait\nneeds a restart: server.listen\n";
        assert_eq!(render(&AdminRequest::Reload, &reloaded), text);
        let nothing = json!({"changed": [], "restart": []});
        assert_eq!(render(&AdminRequest::Reload, &nothing), "nothing has changed\n");
    }
}
