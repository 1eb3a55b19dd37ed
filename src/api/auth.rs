//! Authentication by API keys, which are known by their hashes. A key's text is never kept, logged
//! or shown.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use tokio::sync::watch;
use warp::http::HeaderMap;
use warp::http::header::AUTHORIZATION;

use super::rate_limit::{Bucket, Permits};
use crate::domain::{ChainId, KeyId, UnixMillis, lock};
use crate::history::{History, HistoryError};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyInfo {
    /// Usage is counted under it.
    pub id: KeyId,
    /// The id as shown to users.
    pub public_id: String,
    pub name: Option<String>,
    /// Requests per 1,000 seconds; `None` is unlimited.
    pub rate_millis: Option<u64>,
    /// Total trades; `None` is unlimited.
    pub quota: Option<u64>,
    /// Concurrent streams; `None` is the server's default.
    pub streams: Option<u32>,
    /// The chains that the key may read; `None` is all.
    pub chains: Option<Vec<ChainId>>,
    /// From this time on the key is rejected.
    pub expires: Option<UnixMillis>,
    pub revoked: bool,
}

impl KeyInfo {
    fn is_valid(&self, now: UnixMillis) -> bool {
        !self.revoked && self.expires.is_none_or(|at| now < at)
    }
}

/// The set of keys, indexed by the SHA-256 of their text.
#[derive(Debug, Default)]
pub struct KeyRing {
    /// By the first eight bytes of the hash, which reveal nothing about a key. The whole hash is
    /// compared in constant time.
    entries: HashMap<[u8; 8], Vec<(Hash, Arc<KeyInfo>)>>,
    by_id: HashMap<KeyId, Arc<KeyInfo>>,
}

type Hash = [u8; 32];

impl FromIterator<(Hash, KeyInfo)> for KeyRing {
    fn from_iter<I: IntoIterator<Item = (Hash, KeyInfo)>>(keys: I) -> Self {
        let mut ring = Self::default();
        for (hash, info) in keys {
            let info = Arc::new(info);
            ring.by_id.insert(info.id, Arc::clone(&info));
            ring.entries.entry(prefix(&hash)).or_default().push((hash, info));
        }
        ring
    }
}

impl KeyRing {
    fn find(&self, key: &[u8]) -> Option<&Arc<KeyInfo>> {
        let hash: Hash = Sha256::digest(key).into();
        let candidates = self.entries.get(&prefix(&hash))?;
        let is = |known: &Hash| bool::from(known.as_slice().ct_eq(hash.as_slice()));
        candidates.iter().find(|(known, _)| is(known)).map(|(_, info)| info)
    }
}

fn prefix(hash: &Hash) -> [u8; 8] {
    std::array::from_fn(|at| hash.get(at).copied().unwrap_or_default())
}

/// The current key ring, which its owner replaces at run time. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Keys(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// Its receivers learn of each replacement.
    ring: watch::Sender<Arc<KeyRing>>,
    /// Usage of limits by key, kept when the ring is replaced.
    states: Mutex<HashMap<KeyId, Arc<KeyState>>>,
}

#[derive(Debug, Default)]
pub(super) struct KeyState {
    pub(super) bucket: Bucket,
    pub(super) streams: Permits,
    pub(super) gains: Permits,
    pub(super) explained: Permits,
}

#[derive(Debug, Clone)]
pub(super) struct Caller {
    pub(super) key: Arc<KeyInfo>,
    pub(super) state: Arc<KeyState>,
}

impl Caller {
    pub(super) async fn has_used_up(&self, history: &History) -> Result<bool, HistoryError> {
        match self.key.quota {
            Some(quota) => Ok(history.usage(self.key.id).await? >= quota),
            None => Ok(false),
        }
    }
}

impl Keys {
    pub fn new(ring: KeyRing) -> Self {
        let keys = Self::default();
        keys.replace(ring);
        keys
    }

    /// Makes these the only valid keys. Open responses to keys that are no longer valid end.
    pub fn replace(&self, ring: KeyRing) {
        let mut states = lock(&self.0.states);
        states.retain(|id, _| ring.by_id.contains_key(id));
        self.0.ring.send_replace(Arc::new(ring));
    }

    fn ring(&self) -> Arc<KeyRing> {
        Arc::clone(&self.0.ring.borrow())
    }

    /// Notifies of each replacement.
    pub(super) fn changes(&self) -> watch::Receiver<Arc<KeyRing>> {
        self.0.ring.subscribe()
    }

    pub(super) fn valid(&self, id: KeyId, now: UnixMillis) -> Option<Arc<KeyInfo>> {
        self.ring().by_id.get(&id).filter(|key| key.is_valid(now)).cloned()
    }

    /// The caller of a request; `None` for a missing, malformed, unknown, expired or revoked key.
    pub(super) fn caller(&self, headers: &HeaderMap, now: UnixMillis) -> Option<Caller> {
        let ring = self.ring();
        let key = ring.find(presented(headers)?)?;
        if !key.is_valid(now) {
            return None;
        }
        let mut states = lock(&self.0.states);
        let state = Arc::clone(states.entry(key.id).or_default());
        Some(Caller { key: Arc::clone(key), state })
    }
}

const API_KEY_HEADER: &str = "x-api-key";

/// Whether a request contains a key, valid or not.
pub(super) fn has_credentials(headers: &HeaderMap) -> bool {
    headers.contains_key(AUTHORIZATION) || headers.contains_key(API_KEY_HEADER)
}

/// The key of a request: the bearer token, else `x-api-key`. Repeated headers are rejected.
fn presented(headers: &HeaderMap) -> Option<&[u8]> {
    let authorization = headers.get_all(AUTHORIZATION);
    let own = headers.get_all(API_KEY_HEADER);
    if authorization.iter().nth(1).is_some() || own.iter().nth(1).is_some() {
        return None;
    }
    let bearer = authorization.iter().find_map(|value| bearer(value.as_bytes()));
    bearer.or_else(|| own.iter().next().map(|value| value.as_bytes().trim_ascii()))
}

/// `Bearer <token>`, the scheme in any case.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked("bearer".len())?;
    let is_bearer = scheme.eq_ignore_ascii_case(b"bearer") && token.first() == Some(&b' ');
    is_bearer.then(|| token.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "bl_secret";
    const NOW: UnixMillis = UnixMillis(1000);

    fn info() -> KeyInfo {
        KeyInfo {
            id: KeyId(7),
            public_id: "0007".into(),
            name: None,
            rate_millis: None,
            quota: None,
            streams: None,
            chains: None,
            expires: None,
            revoked: false,
        }
    }

    fn keys(info: KeyInfo) -> Keys {
        Keys::new(KeyRing::from_iter([(Sha256::digest(KEY).into(), info)]))
    }

    #[track_caller]
    fn check(keys: &Keys, headers: &[(&'static str, &str)], expected: bool) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        assert_eq!(keys.caller(&map, NOW).is_some(), expected, "{headers:?}");
    }

    #[test]
    fn a_key_comes_as_bearer_or_as_its_own_header() {
        let keys = keys(info());
        for value in ["Bearer bl_secret", "bearer bl_secret", "BEARER   bl_secret "] {
            check(&keys, &[("authorization", value)], true);
        }
        check(&keys, &[("x-api-key", KEY)], true);
        check(&keys, &[("authorization", "Basic dTpw"), ("x-api-key", KEY)], true);
        for value in [
            "",
            "Bearer",
            "Bearer ",
            "bl_secret",
            "Bearerbl_secret",
            "Basic bl_secret",
            "Bearer bl_secre",
            "Bearer bl_secret2",
            "Bearer bl_secret x",
        ] {
            check(&keys, &[("authorization", value)], false);
        }
        check(&keys, &[], false);
        check(&keys, &[("x-api-key", "")], false);
        check(&keys, &[("authorization", "Bearer wrong"), ("x-api-key", KEY)], false);
        check(&keys, &[("x-api-key", KEY), ("x-api-key", KEY)], false);
        check(
            &keys,
            &[("authorization", "Bearer bl_secret"), ("authorization", "Bearer bl_secret")],
            false,
        );
    }

    #[test]
    fn revoked_and_expired_keys_are_as_unknown_ones() {
        let with = |revoked, expires| keys(KeyInfo { expires, revoked, ..info() });
        let header = [("x-api-key", KEY)];
        check(&with(true, None), &header, false);
        check(&with(false, Some(NOW)), &header, false);
        check(&with(false, Some(UnixMillis(NOW.0 + 1))), &header, true);
    }

    #[test]
    fn a_replaced_ring_keeps_what_a_key_has_in_use() {
        let keys = keys(info());
        let mut headers = HeaderMap::new();
        headers.insert("x-api-key", KEY.parse().unwrap());
        let permit = keys.caller(&headers, NOW).unwrap().state.streams.take(1);
        keys.replace(KeyRing::from_iter([(Sha256::digest(KEY).into(), info())]));
        assert!(keys.caller(&headers, NOW).unwrap().state.streams.take(1).is_none());
        drop(permit);
        assert!(keys.caller(&headers, NOW).unwrap().state.streams.take(1).is_some());
        keys.replace(KeyRing::default());
        assert!(keys.caller(&headers, NOW).is_none());
    }
}
