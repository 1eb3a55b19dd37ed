//! Plain HTTP over the same endpoints, rates, retries and failover as JSON-RPC: for explorers,
//! gateways and nodes that speak paths.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::sleep;

use super::endpoint::EndpointId;
use super::error::UpstreamError;
use super::policy::{self, Failure, Verdict};
use super::pool::{CallOptions, Pool};
use super::secret::mask;
use super::send::Received;
use super::transport::Response;
use super::tries::{Lesson, Open};

/// One HTTP exchange that is not JSON-RPC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// What it is counted, and remembered as not offered, under.
    pub name: &'static str,
    /// Behind the path of the endpoint's URL: "" or "/v1/accounts/…".
    pub path: String,
    /// Joined to the query that the endpoint's URL may have already (it may hold a key).
    pub query: Vec<(&'static str, String)>,
    /// `None`: GET. Else POST of JSON.
    pub body: Option<Bytes>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    pub status: u16,
    pub body: Bytes,
    pub endpoint: EndpointId,
}

/// What a family's pure function makes of a status and a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    Good,
    /// The endpoint asks for less; how long it wants to rest, where it says so.
    SlowDown(Option<Duration>),
    /// Why it has to be asked again, here or elsewhere.
    Again(String),
    /// This endpoint does not have it.
    NotOffered(String),
    /// The same everywhere.
    Refused {
        code: i64,
        message: String,
    },
}

/// An exchange that gave no result.
struct Refusal {
    verdict: Verdict,
    failure: Failure,
    rest: Option<Duration>,
}

impl Pool {
    /// One exchange, until `read` finds it good or final.
    pub async fn ask(
        &self,
        ask: &Ask,
        read: fn(u16, &[u8]) -> Reading,
        options: &CallOptions,
    ) -> Result<Reply, UpstreamError> {
        let mut open = Open::new(0, options);
        loop {
            let needs = open.needs(options, ask.name, 1);
            let permit = self.inner.admission.admit(needs.clone()).await?;
            let (mut sent, received) = self.send_hedged(permit, &needs, ask, 1).await;
            let reading = understand(received, read);
            self.count(sent.endpoint, ask.name, reading.is_err());
            let Refusal { verdict, failure, rest } = match reading {
                Ok(Response { status, body, .. }) => {
                    self.learn(sent, true, &[]);
                    return Ok(Reply { status, body, endpoint: sent.endpoint });
                }
                Err(refusal) => refusal,
            };
            let failure = failure.map_text(|text| mask(text, &self.secrets(sent.endpoint)));
            sent.rest = sent.rest.or(rest.map(|rest| rest.min(self.inner.limits.retry_after_max)));
            let lesson = [Lesson { verdict, method: ask.name, failure }];
            self.learn(sent, false, &lesson);
            let [lesson] = lesson;
            let (again, pause) = self.next_try(open, options, sent, &lesson)?;
            open = again;
            sleep(pause).await;
        }
    }
}

fn understand(received: Received, read: fn(u16, &[u8]) -> Reading) -> Result<Response, Refusal> {
    let no = |verdict, failure, rest| Err(Refusal { verdict, failure, rest });
    let response = match received {
        Ok(response) => response,
        Err(error) => {
            let failure = Failure::Transport(error);
            return no(policy::judge(&failure, "", false), failure, None);
        }
    };
    let status = response.status;
    match read(status, &response.body) {
        Reading::Good => Ok(response),
        Reading::SlowDown(rest) => {
            no(Verdict::SlowDown, Failure::Http { status, text: String::new() }, rest)
        }
        Reading::Again(text) => {
            // Whatever the body looks like, the status says what it is about.
            let verdict = if status == 429 { Verdict::SlowDown } else { Verdict::Again };
            no(verdict, Failure::Told(text), None)
        }
        Reading::NotOffered(text) => no(Verdict::NotOffered, Failure::Told(text), None),
        Reading::Refused { code, message } => {
            no(Verdict::Final, Failure::Rpc { code, message }, None)
        }
    }
}
