//! Plain HTTP over the same endpoints, rates, retries and failover as JSON-RPC: for explorers,
//! gateways and nodes that speak paths.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::sleep;

use super::classify::classify;
use super::endpoint::EndpointId;
use super::error::UpstreamError;
use super::policy::{Failure, RetryDecision};
use super::pool::{CallOptions, Pool};
use super::refusals::MethodResult;
use super::retry::{Observation, Open};
use super::secret::mask;
use super::send::Received;
use super::transport::Response;

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
    /// For lack of a key, a plan or a quota.
    Denied(String),
    /// An error that is not known: final only when every endpoint answers with one.
    Unknown {
        code: i64,
        message: String,
    },
    /// The same everywhere, or for the caller to ask for less.
    Refused {
        code: i64,
        message: String,
    },
}

/// An exchange that gave no result.
struct Refusal {
    decision: RetryDecision,
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
            let Refusal { decision, failure, rest } = match reading {
                Ok(Response { status, body, .. }) => {
                    self.learn(sent, &[(ask.name, MethodResult::Value)], &[]);
                    return Ok(Reply { status, body, endpoint: sent.endpoint });
                }
                Err(refusal) => refusal,
            };
            let failure = failure.map_text(|text| mask(text, &self.secrets(sent.endpoint)));
            sent.rest = sent.rest.or(rest.map(|rest| rest.min(self.inner.limits.retry_after_max)));
            let observation = [Observation { decision, method: ask.name, failure }];
            self.learn(sent, &[], &observation);
            let [observation] = observation;
            let (again, pause) = self.next_try(open, options, sent, &observation)?;
            open = again;
            sleep(pause).await;
        }
    }
}

fn understand(received: Received, read: fn(u16, &[u8]) -> Reading) -> Result<Response, Refusal> {
    let no = |decision, failure, rest| Err(Refusal { decision, failure, rest });
    let response = match received {
        Ok(response) => response,
        Err(error) => {
            let failure = Failure::Transport(error);
            return no(classify(&failure, "", false), failure, None);
        }
    };
    let status = response.status;
    let rpc = |code, message| Failure::Rpc { status, code, message };
    match read(status, &response.body) {
        Reading::Good => Ok(response),
        Reading::SlowDown(rest) => {
            let text = String::from_utf8_lossy(&response.body).chars().take(TEXT_MAX).collect();
            no(RetryDecision::SlowDown, Failure::Http { status, text }, rest)
        }
        Reading::Again(text) => {
            // Whatever the body looks like, the status says what it is about.
            let is_rate = status == 429;
            let decision = if is_rate { RetryDecision::SlowDown } else { RetryDecision::Retry };
            no(decision, Failure::Told(text), None)
        }
        Reading::NotOffered(text) => no(RetryDecision::Unsupported, Failure::Told(text), None),
        Reading::Denied(text) => no(RetryDecision::Refused, Failure::Told(text), None),
        Reading::Unknown { code, message } => no(RetryDecision::Unknown, rpc(code, message), None),
        Reading::Refused { code, message } => no(RetryDecision::Fatal, rpc(code, message), None),
    }
}

/// Characters of a refusal that are kept.
const TEXT_MAX: usize = 200;
