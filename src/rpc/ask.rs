//! Plain HTTP with the same endpoints, rates, retries and failover as JSON-RPC: for explorers,
//! gateways and nodes with REST paths.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::sleep;

use super::classify::classify;
use super::endpoint::EndpointId;
use super::error::Result;
use super::policy::Failure;
use super::policy::RetryDecision::{self, Fatal, Refused, Retry, SlowDown, Unknown, Unsupported};
use super::pool::{CallOptions, Pool};
use super::retry::{Observation, PendingCall};
use super::transport::{Ask, Received, Response};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    pub body: Bytes,
    pub endpoint: EndpointId,
}

/// How a family's pure reader classifies a status and a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyClass {
    Good,
    /// The endpoint asks for fewer requests, with the cooldown that it requests, if any.
    SlowDown(Option<Duration>),
    /// Why a retry is needed, here or elsewhere.
    Again(String),
    NotOffered(String),
    /// The endpoint refuses for lack of a key, a plan or a quota.
    Denied(String),
    /// An unknown error: final only when every endpoint answers with one.
    Unknown {
        code: i64,
        message: String,
    },
    /// Every endpoint would answer the same, or the caller must reduce the request.
    Refused {
        code: i64,
        message: String,
    },
}

/// An exchange without a result: the decision, the failure, and the cooldown that the endpoint
/// requests.
type Refusal = (RetryDecision, Failure, Option<Duration>);

impl Pool {
    pub async fn ask(
        &self,
        ask: &Ask,
        read: fn(u16, &[u8]) -> ReplyClass,
        options: &CallOptions,
    ) -> Result<Reply> {
        let mut open = PendingCall::new(0, options);
        loop {
            let needs = open.needs(options, ask.name, 1);
            let permit = self.inner.admission.admit(needs.clone()).await?;
            let (mut sent, received) = self.send_hedged(permit, &needs, ask, 1).await;
            let reading = classify_reply(received, read);
            self.count(sent.endpoint, ask.name, reading.is_err());
            let (decision, failure, wait) = match reading {
                Ok(Response { body, .. }) => {
                    let is_null = false;
                    self.record_observations(sent, &[(ask.name, is_null)], &[]);
                    return Ok(Reply { body, endpoint: sent.endpoint });
                }
                Err(refusal) => refusal,
            };
            let failure = failure.masked(&self.secrets(sent.endpoint));
            let wait = wait.map(|wait| wait.min(self.inner.limits.retry_after_max));
            sent.cooldown = sent.cooldown.or(wait);
            let is_repeated = open.fails_repeatedly(&failure);
            let observation = Observation { decision, method: ask.name, failure, is_repeated };
            self.record_observations(sent, &[], std::slice::from_ref(&observation));
            let (again, pause) = self.decide_retry(open, options, sent, &observation)?;
            open = again;
            sleep(pause).await;
        }
    }
}

fn classify_reply(got: Received, read: fn(u16, &[u8]) -> ReplyClass) -> Result<Response, Refusal> {
    let response = got.map_err(|error| {
        let failure = Failure::Transport(error);
        (classify(&failure, "", false), failure, None)
    })?;
    let status = response.status;
    let rpc = |code, message| Failure::Rpc { status, code, message };
    let rejected = |text| Failure::Rejected { status, text };
    Err(match read(status, &response.body) {
        ReplyClass::Good => return Ok(response),
        ReplyClass::SlowDown(wait) => {
            let text = String::from_utf8_lossy(&response.body).into_owned();
            (SlowDown, Failure::Http { status, text }, wait)
        }
        // Status 429 means a rate limit with any body.
        ReplyClass::Again(text) if status == 429 => (SlowDown, rejected(text), None),
        ReplyClass::Again(text) => (Retry, rejected(text), None),
        ReplyClass::NotOffered(text) => (Unsupported, rejected(text), None),
        ReplyClass::Denied(text) => (Refused, rejected(text), None),
        ReplyClass::Unknown { code, message } => (Unknown, rpc(code, message), None),
        ReplyClass::Refused { code, message } => (Fatal, rpc(code, message), None),
    })
}
