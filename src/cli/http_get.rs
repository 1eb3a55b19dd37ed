//! HTTP requests to another blotter.

use std::time::Duration;

use bytes::Bytes;
use http::{StatusCode, Uri};

use super::config::secret::ConfigUrl;
use super::errors::CliError;
use crate::rpc::{
    HttpMethod, HttpTransport, Request, SecretText, SecretUrl as Target, Transport as _,
    TransportError,
};

pub(super) struct GetAnswer {
    pub(super) status: StatusCode,
    /// The `retry-after` header, if it is a number of seconds.
    pub(super) retry_after: Option<Duration>,
    pub(super) body: Bytes,
}

/// Why there is no response. No text contains the URL or the key.
#[derive(Debug, thiserror::Error)]
pub(super) enum GetError {
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    #[error("the answer cannot be read: {0}")]
    Broken(TransportError),
}

/// The HTTP client of one command, and its API key.
pub(super) struct Client {
    transport: HttpTransport,
    key: String,
}

impl Client {
    pub(super) fn new(key: &str) -> Result<Self, CliError> {
        let key = checked_key(key)?;
        let transport = HttpTransport::with_system_roots()
            .map_err(|error| CliError::failed("the HTTP client cannot be started", error))?;
        Ok(Self { transport, key })
    }

    /// Sends a POST if there is a JSON body, else a GET. `wait_max` bounds the whole exchange.
    pub(super) async fn send(
        &self,
        url: &str,
        body: Option<Bytes>,
        wait_max: Duration,
        body_bytes_max: usize,
    ) -> Result<GetAnswer, GetError> {
        let bearer = SecretText::new(format!("Bearer {}", self.key));
        let request = Request {
            method: if body.is_some() { HttpMethod::Post } else { HttpMethod::Get },
            url: Target::new(url),
            headers: vec![("authorization".to_owned(), bearer)],
            body: body.unwrap_or_default(),
            timeout: wait_max,
            body_bytes_max,
        };
        let answer = self.transport.send(request).await.map_err(|error| match error {
            TransportError::Connect(cause) => GetError::Unreachable(cause),
            TransportError::Timeout
            | TransportError::Broken(_)
            | TransportError::TooLarge { .. } => GetError::Broken(error),
        })?;
        let seconds = answer.retry_after.and_then(|text| text.parse().ok());
        let status = StatusCode::from_u16(answer.status)
            .map_err(|error| GetError::Broken(TransportError::Broken(error.to_string())))?;
        let retry_after = seconds.map(Duration::from_secs);
        Ok(GetAnswer { status, retry_after, body: answer.body })
    }
}

/// Rejects a URL that would send keys and responses over a network in plain text.
pub(super) fn require_private(flag: &str, url: &ConfigUrl, insecure: bool) -> Result<(), CliError> {
    if insecure || is_private(url) {
        return Ok(());
    }
    Err(CliError::Usage(format!(
        "{flag}: http to {} sends keys and answers in plain text: use https, or allow it with \
         --insecure",
        url.host()
    )))
}

fn is_private(url: &ConfigUrl) -> bool {
    let Ok(uri) = url.expose().parse::<Uri>() else { return false };
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_ascii_lowercase();
    let is_loopback =
        host.parse().is_ok_and(|ip: std::net::IpAddr| ip.to_canonical().is_loopback());
    uri.scheme_str() == Some("https") || is_loopback || host == "localhost"
}

/// Without the line end that a key has where it was read from a file.
fn checked_key(key: &str) -> Result<String, CliError> {
    let key = key.trim();
    if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(CliError::Usage("--key: it holds characters that no key has".to_owned()));
    }
    Ok(key.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_no_request_can_hold_is_refused_and_not_shown() {
        assert_eq!(checked_key("blt_a-b\n").unwrap(), "blt_a-b");
        for wrong in ["planted\nkey", "planted key", "plantedä"] {
            let error = checked_key(wrong).unwrap_err().report();
            assert!(error.contains("--key") && !error.contains("planted"), "{error}");
        }
    }

    #[test]
    fn plain_text_stays_on_this_machine() {
        let refused =
            |url: &str| require_private("--url", &ConfigUrl::parse(url).unwrap(), false).is_err();
        for url in [
            "https://h.example",
            "HTTPS://h.example",
            "http://localhost:1",
            "http://LOCALHOST",
            "http://127.0.0.1:8080/base",
            "http://127.9.9.9",
            "http://[::1]:1",
            "http://[::ffff:127.0.0.1]",
            "http://me:word@127.0.0.1",
        ] {
            assert!(!refused(url), "{url}");
        }
        for url in [
            "http://h.example",
            "http://10.0.0.1",
            "http://localhost.example",
            "http://127.0.0.1.example",
            "http://127.0.0.1@h.example",
            "http://[::2]",
            "http://0.0.0.0",
        ] {
            assert!(refused(url), "{url}");
            assert!(require_private("--url", &ConfigUrl::parse(url).unwrap(), true).is_ok());
        }
    }
}
