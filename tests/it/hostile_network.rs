//! The transport and the pool over real sockets against hostile servers: what is too long is not
//! read, an unproven server gets no request, redirects are not followed.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use blotter::rpc::{
    HttpMethod, HttpTransport, Pool, PoolLimits, Request, Response, SecretUrl, Transport,
    TransportError, UpstreamError,
};
use flate2::Compression;
use flate2::write::GzEncoder;
use rustls::pki_types::{PrivateKeyDer, ServerName};

use crate::support::script::{Epoch, calls, lane};

const PATIENCE: Duration = Duration::from_secs(60);

fn head(more: &str, length: usize) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\n{more}content-length: {length}\r\nconnection: close\r\n\r\n").into()
}

fn whole(more: &str, body: &[u8]) -> Vec<u8> {
    [head(more, body.len()).as_slice(), body].concat()
}

/// Answers each connection by what it asked; the connections are counted by what comes out.
fn server(
    answer: impl Fn(&[u8]) -> Vec<u8> + Send + 'static,
) -> (SocketAddr, mpsc::Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, asked) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let request = request(&mut stream);
            // The client closes the connection when it has seen enough, as does the test at its
            // end.
            let _ = stream.write_all(&answer(&request));
            if sender.send(request).is_err() {
                return;
            }
        }
    });
    (address, asked)
}

fn request(stream: &mut TcpStream) -> Vec<u8> {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let (mut all, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&all).to_ascii_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.split("content-length: ").nth(1);
            let length = length.and_then(|rest| rest.split("\r\n").next()?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return all;
            }
        }
        match stream.read(&mut part) {
            Ok(count) if count > 0 => all.extend_from_slice(&part[..count]),
            _ => return all,
        }
    }
}

async fn ask(url: String, body_bytes_max: usize) -> Result<Response, TransportError> {
    let request = Request {
        method: HttpMethod::Post,
        url: SecretUrl::new(url),
        headers: vec![],
        body: "{}".into(),
        timeout: Duration::from_secs(20),
        body_bytes_max,
    };
    HttpTransport::new().unwrap().send(request).await
}

fn zipped(size: usize) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let zeros = vec![b'0'; 1 << 20];
    for _ in 0..size / zeros.len() {
        encoder.write_all(&zeros).unwrap();
    }
    encoder.finish().unwrap()
}

/// 200 MiB in 200 KiB: decompressed only up to the limit.
#[tokio::test]
async fn a_decompression_bomb_is_given_up_at_the_limit() {
    let bomb = zipped(200 << 20);
    assert!(bomb.len() < 300_000, "{}", bomb.len());
    let answer = whole("content-encoding: gzip\r\n", &bomb);
    let (address, _asked) = server(move |_| answer.clone());
    let error = ask(format!("http://{address}/"), 1 << 20).await.unwrap_err();
    assert_eq!(error, TransportError::TooLarge { bytes_max: 1 << 20 });
    // A body that decompresses to less is accepted.
    let answer = whole("content-encoding: gzip\r\n", &zipped(1 << 20));
    let (address, _asked) = server(move |_| answer.clone());
    assert_eq!(ask(format!("http://{address}/"), 1 << 20).await.unwrap().body.len(), 1 << 20);
}

/// An impossible length, and an endless body.
#[tokio::test]
async fn a_body_of_any_length_is_taken_up_to_the_limit_only() {
    let huge = [head("", 1 << 60).as_slice(), &[b'x'; 3000]].concat();
    let chunk = format!("100000\r\n{}\r\n", "x".repeat(1 << 20)).repeat(8);
    let endless = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{chunk}");
    for answer in [huge, endless.into_bytes()] {
        let (address, _asked) = server(move |_| answer.clone());
        let error = ask(format!("http://{address}/"), 2000).await.unwrap_err();
        assert_eq!(error, TransportError::TooLarge { bytes_max: 2000 });
    }
}

/// Heads that are too long or missing give an error soon.
#[tokio::test]
async fn a_garbled_response_head_is_an_error_without_the_address() {
    let long = format!("HTTP/1.1 200 OK\r\nx-a: {}\r\n\r\n", "a".repeat(8 << 20));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x-a: b\r\n".repeat(100_000));
    let two = "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab".to_owned();
    for text in [long, many, two, "SSH-2.0-x\r\n".to_owned(), "\0\r\n\r\n".repeat(9), String::new()]
    {
        let name = text.chars().take(40).collect::<String>();
        let (address, _asked) = server(move |_| text.clone().into_bytes());
        let error = ask(format!("http://{address}/planted-key"), 1000).await;
        let error = error.err().unwrap_or_else(|| panic!("{name:?} was taken"));
        assert!(matches!(error, TransportError::Broken(_)), "{name:?}: {error:?}");
        assert!(!format!("{error} {error:?}").contains("planted"), "{error:?}");
    }
}

/// Each kind of redirect, to a server that waits for any client.
#[tokio::test]
async fn no_redirect_leads_to_another_host() {
    let (trap, lured) = server(|_| whole("", b"{}"));
    for status in [301, 302, 303, 307, 308] {
        let moved = format!(
            "HTTP/1.1 {status} X\r\nlocation: http://{trap}/\r\nrefresh: 0;url=http://{trap}/\r\n\
             content-length: 0\r\nconnection: close\r\n\r\n"
        );
        let (address, _asked) = server(move |_| moved.clone().into_bytes());
        assert_eq!(ask(format!("http://{address}/"), 1000).await.unwrap().status, status);
    }
    assert!(lured.try_recv().is_err(), "a redirect was followed");
}

/// JSON of any depth or size from a node is an error of that node only.
#[tokio::test]
async fn json_beyond_reason_ends_in_an_error() {
    let deep = |open: &str, close: &str| [open.repeat(500_000), close.repeat(500_000)].concat();
    let bodies = [
        deep("[", "]"),
        "[".repeat(2_000_000),
        format!("{{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}}", deep("{\"a\":[", "]}")),
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{}}}", "9".repeat(100_000)),
        format!(
            "{{\"id\":0,\"error\":{{\"code\":1e999,\"message\":\"{}\"}}}}",
            "x".repeat(3 << 20)
        ),
    ];
    for body in bodies {
        let answer = whole("", body.as_bytes());
        let (address, _asked) = server(move |_| answer.clone());
        let transport = Arc::new(HttpTransport::new().unwrap());
        let endpoint = blotter::rpc::EndpointConfig::new(format!("http://{address}/planted"));
        let limits = PoolLimits { attempts_max: 2, ..PoolLimits::default() };
        let pool = Pool::new(vec![endpoint], transport, limits, Arc::new(Epoch), 1);
        let asked = tokio::time::timeout(PATIENCE, pool.batch(&calls(1), &lane(1))).await;
        match asked.expect("it ends").remove(0) {
            // Raw bytes that were not read yet.
            Ok(answer) => {
                let read = serde_json::from_str::<serde_json::Value>(answer.result.get());
                assert!(read.is_err());
            }
            Err(error) => {
                let shown = error.to_string();
                assert!(shown.len() < 1000 && !shown.contains("planted"), "{}", shown.len());
                assert!(!matches!(error, UpstreamError::NoEndpoint));
            }
        }
    }
}

/// A TLS server whose certificate has no trusted issuer; returns how many bytes it received.
fn tls_server() -> (SocketAddr, rustls::RootCertStore, mpsc::Receiver<usize>) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let certificate = made.cert.der().clone();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    let (config, listener) = (Arc::new(config), TcpListener::bind("127.0.0.1:0").unwrap());
    let address = listener.local_addr().unwrap();
    let (sender, heard) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut tls = rustls::StreamOwned::new(connection, stream);
            let heard = tls.read(&mut [0; 4096]).unwrap_or(0);
            let _ = tls.write_all(&whole("", b"{}"));
            if sender.send(heard).is_err() {
                return;
            }
        }
    });
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).unwrap();
    (address, roots, heard)
}

#[tokio::test]
async fn a_certificate_without_a_trusted_issuer_is_refused_before_any_request() {
    let (address, roots, heard) = tls_server();
    for host in ["localhost", "127.0.0.1"] {
        let url = format!("https://{host}:{}/planted-key", address.port());
        let error = ask(url, 1000).await.unwrap_err();
        assert!(
            matches!(&error, TransportError::Connect(why) if why.contains("ertificate")),
            "{error:?}"
        );
        assert!(!format!("{error:?}").contains("planted"));
        assert_eq!(heard.recv_timeout(PATIENCE).unwrap(), 0, "the server received something");
    }
    // A client that trusts it gets an answer.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let connection = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut tls = rustls::StreamOwned::new(connection, TcpStream::connect(address).unwrap());
    tls.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = [0; 12];
    tls.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
}

/// Text where TLS is expected, and a name that is not on the certificate of a known host.
#[tokio::test]
async fn plain_text_where_tls_is_expected_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
        stream.write_all(&whole("", b"{}")).unwrap();
    });
    let error = ask(format!("https://{address}/planted-key"), 1000).await.unwrap_err();
    assert!(matches!(error, TransportError::Connect(_)), "{error:?}");
}
