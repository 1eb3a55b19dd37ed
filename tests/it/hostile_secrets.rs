//! Secrets are planted in everything that can hold one, nodes echo them in every form, and all
//! output of the program is searched for them.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use blotter::api::Keys;
use blotter::rpc::{
    EndpointConfig, HttpMethod, HttpTransport, Pool, PoolLimits, Request, SecretText, SecretUrl,
    Transport,
};

use crate::support::program::Place;
use crate::support::script::Epoch;
use crate::support::served::{key, ring};

const WALLET: &str = "7xKXtg2CW87d97TXJSDpbD5jBkheTqA83TZRuJosgAsU";
const EVM: &str = "0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045";
const TRON: &str = "TRJ1Uy65pAT9mB5ufqwma1Hmy4co8dZcMi";
const SIGNATURE: &str = "1111111111111111111111111111111111111111111111111111111111111111";
/// `planteduser:plantedword`, as a URL's user and password are sent.
const BASIC: &str = "cgxhbnrlzhvzzxi6cgxhbnrlzhdvcmq";

/// A node that echoes its request in several forms. `elsewhere`: the target of its redirects.
fn echoing_node(elsewhere: String) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for (turn, stream) in listener.incoming().enumerate() {
            let _ = answer(&mut BufReader::new(stream.unwrap()), turn, &elsewhere);
        }
    });
    address
}

fn answer(from: &mut BufReader<TcpStream>, turn: usize, elsewhere: &str) -> std::io::Result<()> {
    let (mut said, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if from.read_line(&mut line)? <= 2 {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        said.push_str(&line);
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    let quoted = serde_json::Value::from(said.as_str());
    let (status, head, body) = match turn % 7 {
        0 => ("500 Oops", String::new(), said),
        1 => ("200 OK", String::new(), format!("<html>{said}</html>")),
        2 => ("429 Slow", "retry-after: 0\r\n".to_owned(), said),
        3 => ("302 Found", format!("location: {elsewhere}\r\n"), said),
        4 => ("401 No", String::new(), format!("{{\"error\":{quoted}}}")),
        5 => {
            let error = format!("{{\"code\":-32000,\"message\":{quoted}}}");
            ("200 OK", String::new(), format!("{{\"jsonrpc\":\"2.0\",\"id\":0,\"error\":{error}}}"))
        }
        _ => ("200 OK", "x-cut: 1\r\ncontent-length: 9999\r\n".to_owned(), said),
    };
    let length = if head.contains("9999") {
        String::new()
    } else {
        format!("content-length: {}\r\n", body.len())
    };
    let text = format!("HTTP/1.1 {status}\r\n{head}{length}connection: close\r\n\r\n{body}");
    from.get_mut().write_all(text.as_bytes())
}

/// Counts who comes.
fn trap() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let came = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&came);
    thread::spawn(move || {
        for _ in listener.incoming() {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    });
    (url, came)
}

/// Each command is stopped after this time. A command whose chain has a dead node, explorer and
/// gateway waits for two minutes; all others end before.
const COMMAND_SECONDS: u64 = 50;

/// What runs next to the server.
const COMMANDS: &[&[&str]] = &[
    &["config"],
    &["chains", "--check"],
    &["chains", "--check", "--json"],
    &["history", WALLET, "--limit", "2"],
    &["history", WALLET, "--limit", "2", "--output", "out.ndjson"],
    &["history", EVM, "--chain", "eth", "--limit", "2"],
    &["history", WALLET, "--url", "http://127.0.0.1:1", "--key", "blt_plantedflag"],
    &["history", WALLET, "--url", "http://plantedname:plantedword@127.0.0.1:1"],
    &["pnl", WALLET],
    &["verify", WALLET, "--against", "http://127.0.0.1:1/plantedagainst"],
    &["explain", SIGNATURE, "--wallet", WALLET],
    &["keys", "list"],
    &["keys", "list", "--json"],
];

/// A planted word, or the key, with what stands around it.
fn secret_in(text: &str, key: &str) -> Option<String> {
    let low = text.to_ascii_lowercase();
    let at =
        ["planted", BASIC, &key.to_ascii_lowercase()].iter().find_map(|word| low.find(word))?;
    Some(low[at.saturating_sub(150)..(at + 60).min(low.len())].to_owned())
}

#[test]
fn no_secret_is_in_any_output() {
    let (elsewhere, came) = trap();
    let node = echoing_node(elsewhere);
    let file = format!(
        "[server]\npage_wait = '2s'\nstream_window = '3s'\n[chains.sol]\nrpc = [\
         {{ url = 'http://planteduser:plantedword@{node}/v2/PLANTEDpath0123456789?api-key=plantedquery&second=planted%2Bescaped%3D%3D', \
         headers = {{ x-token = 'plantedheader' }} }}]\n\
         [chains.eth]\nrpc = ['https://e.example/v3/PLANTEDeth0123456789abcdef']\n\
         explorer = {{ url = 'http://{node}/api', key = 'plantedexplorer' }}\n\
         portal = 'http://{node}/PLANTEDportal0123'\n\
         [chains.tron]\nrpc = [{{ url = 'http://{node}/PLANTEDtron0123', \
         headers = {{ TRON-PRO-API-KEY = 'plantedtronkey' }} }}]\n\
         [prices]\ncandles = 'http://{node}/PLANTEDcandles0123'\n"
    );
    let place = Place::new()
        .file("blotter.toml", &file)
        .variable("BLOTTER_LOG", "trace")
        .variable("BLOTTER_KEY", "blt_plantedclientkey");
    let made = place.run(&["keys", "create", "--json", "--data-dir", "data"]);
    let made: serde_json::Value = serde_json::from_str(&made.stdout).unwrap();
    let key = made["key"].as_str().unwrap().to_owned();

    let mut said = Vec::new();
    let mut server = place.serve(&["serve", "--listen", "127.0.0.1:0", "--data-dir", "data"]);
    let history = format!("/v1/wallets/{WALLET}/history");
    let wrong = format!("{}planted", &key[..key.len() - 7]);
    for (path, key) in [
        (history.clone(), &key),
        (format!("{history}?limit=3"), &key),
        (format!("{history}?limit=3"), &wrong),
        (format!("{history}?cursor=plantedcursor"), &key),
        (format!("/v1/wallets/{EVM}/history?chain=eth&limit=3"), &key),
        (format!("/v1/wallets/{TRON}/history?chain=tron&limit=3"), &key),
        ("/v1/chains".to_owned(), &key),
        ("/v1/usage".to_owned(), &key),
        ("/metrics".to_owned(), &key),
        ("/readyz".to_owned(), &key),
        ("/healthz".to_owned(), &key),
    ] {
        let answer = server.get(&path, key);
        said.push((path, answer.head + &answer.body));
    }
    server.signal("TERM");
    server.wait();
    said.push(("the log".to_owned(), place.log("serve")));
    // At once, since some wait for nodes; each has a folder of its own.
    thread::scope(|scope| {
        let run = |(at, args): (usize, &&[&str])| {
            let (place, folder) = (&place, format!("data-{at}"));
            let args = [*args, &["--data-dir", &folder]]
                .concat()
                .iter()
                .map(|arg| (*arg).to_owned())
                .collect::<Vec<_>>();
            scope.spawn(move || {
                let args: Vec<_> = args.iter().map(String::as_str).collect();
                let ran = place.run_within(COMMAND_SECONDS, &args);
                (args.join(" "), ran.stdout + &ran.stderr)
            })
        };
        let running: Vec<_> = COMMANDS.iter().enumerate().map(run).collect();
        said.extend(running.into_iter().map(|one| one.join().unwrap()));
    });
    said.push((
        "keys.toml".to_owned(),
        std::fs::read_to_string(place.path().join("data/keys.toml")).unwrap(),
    ));
    for (what, text) in &said {
        assert_eq!(secret_in(text, &key), None, "{what} shows a secret");
    }
    assert!(said.iter().any(|(_, text)| text.contains("127.0.0.1")), "nothing was said at all");
    assert_eq!(came.load(Ordering::Relaxed), 0, "a redirect was followed");
}

/// A panic message shows the `Debug` form of values.
#[test]
fn no_secret_is_in_a_panic() {
    let url = "https://planteduser:plantedword@node.example/planted-path?key=plantedquery";
    let headers = vec![("x-token".to_owned(), SecretText::new("plantedheader"))];
    let endpoint = EndpointConfig { headers: headers.clone(), ..EndpointConfig::new(url) };
    let request = Request {
        method: HttpMethod::Post,
        url: SecretUrl::new(url),
        headers,
        body: "{}".into(),
        timeout: Duration::from_secs(1),
        body_bytes_max: 1,
    };
    let transport: Arc<dyn Transport> = Arc::new(HttpTransport::new().unwrap());
    let clock = Arc::new(Epoch);
    let pool = Pool::new(vec![endpoint.clone()], transport, PoolLimits::default(), clock, 1);
    let keys = Keys::new(ring(&[("blt_plantedkey", key(1, |_| {}))]));
    let shown = format!("{endpoint:?} {request:?} {pool:?} {keys:?}");
    let panicked = std::panic::catch_unwind(|| panic!("{shown}")).unwrap_err();
    let shown = panicked.downcast_ref::<String>().unwrap().to_ascii_lowercase();
    assert!(shown.contains("node.example"), "{shown}");
    for word in ["planted", BASIC] {
        assert!(!shown.contains(word), "{shown}");
    }
}
