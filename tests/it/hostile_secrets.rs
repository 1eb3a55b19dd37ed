//! Secrets are planted in everything that holds one, nodes throw them back in every way, and then
//! everything that the program said is searched.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::program::Place;

const WALLET: &str = "7xKXtg2CW87d97TXJSDpbD5jBkheTqA83TZRuJosgAsU";

/// A node that answers with what it was sent, each time in another form. `elsewhere` is where it
/// sends those who follow redirects.
fn echoing_node(elsewhere: String) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
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
    std::thread::spawn(move || {
        for _ in listener.incoming() {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    });
    (url, came)
}

#[test]
fn no_secret_is_in_anything_that_is_said() {
    let (elsewhere, came) = trap();
    let node = echoing_node(elsewhere);
    let file = format!(
        "[server]\npage_wait = '2s'\nstream_window = '3s'\n[chains.sol]\nrpc = [\
         {{ url = 'http://planteduser:plantedword@{node}/v2/PLANTEDpath0123456789?api-key=plantedquery', \
         headers = {{ x-token = 'plantedheader' }} }}]\n\
         [chains.eth]\nrpc = ['https://e.example/v3/PLANTEDeth0123456789abcdef']\n\
         explorer = {{ url = 'https://x.example/api', key = 'plantedexplorer' }}\n"
    );
    let place = Place::new().file("blotter.toml", &file).variable("BLOTTER_LOG", "trace");
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
    for args in [
        &["config"][..],
        &["chains", "--check"],
        &["chains", "--check", "--json"],
        &["history", WALLET, "--limit", "2", "--data-dir", "data"],
        &["keys", "list", "--data-dir", "data"],
        &["keys", "list", "--json", "--data-dir", "data"],
    ] {
        let ran = place.run(args);
        said.push((args.join(" "), ran.stdout + &ran.stderr));
    }
    said.push((
        "keys.toml".to_owned(),
        std::fs::read_to_string(place.path().join("data/keys.toml")).unwrap(),
    ));
    for (what, text) in &said {
        let low = text.to_ascii_lowercase();
        let at = low.find("planted").or_else(|| low.find(&key.to_ascii_lowercase()));
        let around = at.map(|at| &low[at.saturating_sub(150)..(at + 60).min(low.len())]);
        assert_eq!(around, None, "{what} tells a secret");
    }
    assert!(said.iter().any(|(_, text)| text.contains("127.0.0.1")), "nothing was said at all");
    assert_eq!(came.load(Ordering::Relaxed), 0, "a redirect was followed");
}
