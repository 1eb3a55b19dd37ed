//! The limit on open files and sockets of the process, and the share of it for clients.

use crate::api::ApiLimits;

/// Reserved for the store, the nodes, the log and the keys file.
const RESERVED: u64 = 128;

/// Raises the soft limit to the hard one and returns it; `None` if the system has no such limit or
/// does not report it.
pub(super) fn raise() -> Option<u64> {
    rlimit::increase_nofile_limit(u64::MAX)
        .inspect_err(|error| tracing::warn!(%error, "cannot raise the limit on open files"))
        .ok()
}

/// Reduces the connections to the available descriptors, if those are too few. No address then gets
/// more than half of them.
pub(super) fn fit(limits: ApiLimits, descriptors: Option<u64>) -> ApiLimits {
    let left = descriptors.map_or(u64::MAX, |all| all.saturating_sub(RESERVED.min(all / 2)));
    let most = u32::try_from(left).unwrap_or(u32::MAX);
    if limits.connections_max <= most {
        return limits;
    }
    tracing::warn!(
        connections = most,
        configured = limits.connections_max,
        "the limit on open files allows fewer connections than `server.connections`: raise it \
         (ulimit -n, LimitNOFILE)"
    );
    let of_address = limits.connections_per_address_max.min(most / 2);
    let half_open = limits.half_open_per_address_max.min(most / 4);
    ApiLimits {
        connections_max: most,
        connections_per_address_max: of_address,
        half_open_per_address_max: half_open.max(1),
        streams_max: limits.streams_max.min(usize::try_from(most / 2).unwrap_or(usize::MAX)),
        ..limits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_fit_into_the_descriptors() {
        let fitted = |descriptors| {
            let limits = fit(ApiLimits::default(), descriptors);
            let ApiLimits { connections_max, connections_per_address_max, .. } = limits;
            (connections_max, connections_per_address_max)
        };
        let whole = (4096, 1024);
        assert_eq!(
            (fitted(None), fitted(Some(u64::MAX)), fitted(Some(4224))),
            (whole, whole, whole)
        );
        assert_eq!(fitted(Some(4223)), (4095, 1024));
        assert_eq!(fitted(Some(1024)), (896, 448));
        assert_eq!(fitted(Some(256)), (128, 64));
        assert_eq!(fitted(Some(64)), (32, 16));
    }
}
