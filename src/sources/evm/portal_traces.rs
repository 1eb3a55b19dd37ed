//! Checks whether a gateway has the traces of a window's blocks. A dataset may lack those of its
//! oldest blocks, or of some in between, and accept queries for them all the same: what a contract
//! wallet bought there by an inner call then looks like a token that it only received.

use super::list_client::ListClient;
use super::portal_candidates::TraceSights;
use super::portal_window::{GatewayMode, PortalWindow};
use super::portal_wire as wire;
use crate::domain::{Doubts, Height};

impl ListClient {
    /// Adds the doubt about inner calls to a window if one of its blocks has no traces. If the
    /// lowest transactions only brought tokens, and so came without traces, one query for their
    /// block's traces decides, unless the gateway returned traces at or below that block before.
    pub(super) async fn check_traces(
        &self,
        mode: GatewayMode,
        mut window: PortalWindow,
    ) -> PortalWindow {
        let TraceSights { mut shown, mut lacking, unseen } = window.traces;
        // Transactions that only brought tokens, and failures, do not show that all traces are
        // missing.
        let lacks_some = lacking.is_some();
        let is_open = |at: &Height| {
            shown.is_none_or(|shown| shown > *at) && !self.abilities.has_traces_from(*at)
        };
        if let Some(at) = unseen.filter(|at| lacking.is_none() && is_open(at)) {
            if self.shows_traces(mode, at).await {
                self.abilities.note_traced(at);
                shown = Some(at);
            } else {
                self.abilities.note_untraced(at);
                lacking = Some(at);
            }
        }
        self.abilities.note_window_traces(shown.is_some(), lacks_some);
        // With several endpoints, another one may have returned these traces.
        if let Some(shown) = shown.filter(|_| self.pool.endpoints().len() == 1) {
            self.abilities.note_traces_from(shown);
        }
        if lacking.is_some() {
            window.doubts = window.doubts.union(Doubts::INNER_CALLS);
        }
        window.traces = TraceSights { shown, lacking, unseen };
        window
    }

    /// Whether the transactions of a block that brought tokens have traces. False after a failure:
    /// the window is read again.
    async fn shows_traces(&self, mode: GatewayMode, height: Height) -> bool {
        let query = wire::traces_query(&self.subject.wallet, height);
        let blocks = self.blocks(mode, &query, (height, height)).await.unwrap_or_default();
        blocks.iter().any(|block| !block.traces.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::super::discovery::Discovery;
    use super::super::lists_model::Ways;
    use super::super::lists_tests::{SaleKind, model, read_all, world};
    use super::*;

    /// Sales arrive with their traces, received tokens without them.
    #[tokio::test(start_paused = true)]
    async fn blocks_without_traces_leave_inner_calls_in_doubt() {
        for kind in [SaleKind::Sell, SaleKind::Spam] {
            for (traces_from, doubts) in [
                (0, Doubts::NONE),
                (10, Doubts::NONE),
                (15, Doubts::INNER_CALLS),
                (31, Doubts::INNER_CALLS),
            ] {
                let all = world(kind, [10, 20, 30].into_iter());
                let model = model(&all, 1_100, Ways { traces_from, ..Ways::default() });
                for _ in 0..2 {
                    let windows = read_all(Discovery::Portal, &model, 1_000).await;
                    let are_alike = windows.iter().all(|window| window.doubts == doubts);
                    assert!(are_alike && !windows.is_empty(), "{kind:?} from {traces_from}");
                }
            }
        }
    }

    /// A gateway that has traces of a block has those of all blocks above it.
    #[tokio::test(start_paused = true)]
    async fn that_a_gateway_has_traces_is_asked_once() {
        let all = world(SaleKind::Spam, [10, 20, 30].into_iter());
        let model = model(&all, 1_100, Ways::default());
        let mut asked = Vec::new();
        for _ in 0..3 {
            let before = model.sent.load(Ordering::Relaxed);
            read_all(Discovery::Portal, &model, 1_000).await;
            asked.push(model.sent.load(Ordering::Relaxed) - before);
        }
        assert_eq!(asked, [asked[1] + 1, asked[1], asked[1]]);
        // Where the gateway lacked traces in between, each window is checked by itself.
        model.abilities.note_untraced(500);
        let before = model.sent.load(Ordering::Relaxed);
        read_all(Discovery::Portal, &model, 1_000).await;
        assert_eq!(model.sent.load(Ordering::Relaxed) - before, asked[0]);
    }

    #[test]
    fn blocks_lack_traces_where_no_answer_has_them() {
        let sights = |shown, lacking| TraceSights { shown, lacking, unseen: Some(5) };
        let both = sights(Some(9), Some(7)).joined(sights(Some(3), Some(7)));
        assert_eq!(both, sights(Some(3), Some(7)));
        assert_eq!(sights(None, Some(7)).joined(sights(Some(7), None)), sights(Some(7), None));
    }
}
