//! An endpoint that names and serves another chain for a while: another server answers at its
//! address, with another chain's identity, heads, lists and transactions, as behind a load balancer
//! that was set up wrongly.
//!
//! It leaves right after it has named its own chain, and is back only once it has named the other
//! one twice since its last other answer: one that is back before it is asked is not noticed
//! ("Known and left"). Connections break where it changes.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use blotter::demo::evm::{EvmModel, WalletPlan};
use blotter::demo::solana::SolanaModel;
use blotter::demo::{DemoNode, DemoTransport};
use blotter::domain::Address;
use blotter::registry::Registry;
use blotter::rpc::{Request, Response, Transport, TransportError};
use futures_util::future::{BoxFuture, Either, pending, select};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::sleep;

use super::chain::Chain;
use super::dice::Dice;
use super::evm::HEAD;
use super::peer::{Peer, Role};
use super::solana;
use super::trouble::say;
use super::world::{Seeded, World};
use crate::support::disk::Kept;

/// The genesis hash and the chain id of the other chain.
const OTHER_GENESIS: &str = "4uhcVJyU9pJkvQyS88uRDiswHScCKQY3zQsfCFbz7TLA";
const OTHER_ID: u64 = 0x94a9_059e;
/// How long an answer of the other chain takes.
const QUICK: Duration = Duration::from_millis(5);

/// The nodes that may stray, each with its double on the other chain.
#[derive(Debug)]
pub(super) struct Strays {
    doubles: DemoTransport,
    places: Vec<Place>,
    /// The pools that prices come from, as requests name them: of these the doubles give nothing.
    /// Prices of another chain are believed ("Known and left").
    pools: Vec<String>,
    dice: Mutex<Dice>,
}

#[derive(Debug)]
struct Place {
    label: String,
    state: Mutex<State>,
    /// How often the server behind the address has changed.
    changes: watch::Sender<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Home,
    /// It strays once it has named its own chain.
    Leaving,
    /// With the times that it has named the other chain since its last other answer.
    Away(u32),
}

/// Makes the stand-in of a peer.
type Make = dyn Fn(&Peer, u64) -> DemoNode;

/// Enough to disable an endpoint.
const NAMED: u32 = 2;

impl Strays {
    /// The other chain has a history at each address, or none.
    pub(super) fn of(seeded: &Seeded, seed: u64) -> Arc<Self> {
        let mut dice = Dice::new(seed, 520);
        let is_empty = dice.one_in(2);
        let make: Box<Make> = match &seeded.chain {
            Chain::Solana(_) => {
                let model = SolanaModel::new(seed ^ 1);
                model.set_head(model.head() / 100 * dice.pick(&[20, 99, 150]));
                for wallet in seeded.wallets.iter().filter(|_| is_empty) {
                    model.add_wallet(wallet.address, solana::no_trades());
                }
                Box::new(move |peer, at| {
                    let node = DemoNode::new(model.clone(), at);
                    let mut options = peer.node.options();
                    OTHER_GENESIS.clone_into(&mut options.genesis_hash);
                    node.set_options(options);
                    node
                })
            }
            Chain::Evm(_, chain, _) => {
                let mut other = chain.as_ref().clone();
                other.chain_id = Some(OTHER_ID);
                let head = HEAD / 100 * dice.pick(&[20, 99, 150]);
                let model = EvmModel::with_head(seed ^ 1, &other, Some(head));
                for wallet in seeded.wallets.iter().filter(|_| is_empty) {
                    model.add_wallet(wallet.address, WalletPlan::trades(0));
                }
                Box::new(move |peer, at| super::evm::peer(&model, peer.role.clone(), at).node)
            }
        };
        let strays =
            |peer: &&Peer| matches!(peer.role, Role::Solana | Role::Rpc(_) | Role::Tron(_));
        let nodes = || (0..).zip(&seeded.peers).filter(|(_, peer)| strays(peer));
        let doubles = nodes().map(|(at, peer)| (peer.host(at), make(peer, 9)));
        let place = |(at, peer): (usize, &Peer)| Place {
            label: format!("http://{}", peer.host(at)),
            state: Mutex::new(State::Home),
            changes: watch::Sender::new(0),
        };
        let (doubles, places) = (DemoTransport::new(doubles), nodes().map(place).collect());
        let registry = Registry::embedded().unwrap();
        let chain = registry.chain(seeded.wallets[0].chain).unwrap();
        let pools = chain.reference_pools.iter().map(in_requests).collect();
        Arc::new(Self { doubles, places, pools, dice: Mutex::new(dice) })
    }

    fn roll<T>(&self, how: impl FnOnce(&mut Dice) -> T) -> T {
        how(&mut self.dice.lock().unwrap())
    }

    /// One endpoint after the other strays, and comes back.
    pub(super) async fn wander(strays: Option<&Self>) {
        let Some(strays) = strays else { return pending().await };
        loop {
            let place = strays.roll(|dice| {
                let last = u64::try_from(strays.places.len()).unwrap() - 1;
                &strays.places[usize::try_from(dice.range(0, last)).unwrap()]
            });
            sleep(strays.wait(&[0, 100, 1_000, 10_000])).await;
            *place.state() = State::Leaving;
            while *place.state() == State::Leaving {
                sleep(strays.wait(&[50])).await;
            }
            sleep(strays.wait(&[0, 100, 1_000, 5_000, 30_000])).await;
            while !place.come_back() {
                sleep(strays.wait(&[50])).await;
            }
        }
    }

    fn wait(&self, millis: &[u64]) -> Duration {
        Duration::from_millis(self.roll(|dice| dice.pick(millis)))
    }

    /// All are back at once. A process that would not notice what they gave is killed first.
    pub(super) async fn end(world: &mut World) {
        let Some(strays) = world.setup.strays.clone() else { return };
        if !strays.places.iter().all(Place::come_back) {
            say("killed, as an endpoint strays");
            world.crash(Kept::All).await;
        }
        strays.places.iter().for_each(|place| place.change(State::Home));
    }
}

impl Place {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn change(&self, to: State) {
        let from = std::mem::replace(&mut *self.state(), to);
        if from != to {
            say(&format!("{} was {from:?} and is {to:?}", self.label));
            self.changes.send_modify(|changes| *changes += 1);
        }
    }

    /// Whether it is back, as nothing that it gave can count any more.
    fn come_back(&self) -> bool {
        let state = *self.state();
        let is_back = !matches!(state, State::Away(named) if named < NAMED);
        if is_back {
            self.change(State::Home);
        }
        is_back
    }

    fn answered(&self, was_away: bool, names: bool, is_right: bool) {
        let state = *self.state();
        match state {
            State::Leaving if names && is_right => self.change(State::Away(NAMED)),
            State::Away(named) if was_away => {
                *self.state() = State::Away(if names { named + 1 } else { 0 });
            }
            State::Home | State::Leaving | State::Away(_) => {}
        }
    }
}

/// Reaches the doubles of nodes that stray.
#[derive(Debug)]
pub(super) struct Straying {
    pub(super) inner: Arc<dyn Transport>,
    pub(super) strays: Arc<Strays>,
}

impl Transport for Straying {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, TransportError>> {
        let label = request.url.label();
        let Some(place) = self.strays.places.iter().find(|place| place.label == label) else {
            return self.inner.send(request);
        };
        Box::pin(async move {
            let mut changes = place.changes.subscribe();
            let (is_away, names) = (matches!(*place.state(), State::Away(_)), names(&request));
            let answer = async {
                if is_away {
                    sleep(QUICK).await;
                    let body = String::from_utf8_lossy(&request.body).to_lowercase();
                    if self.strays.pools.iter().any(|pool| body.contains(pool)) {
                        return Err(TransportError::Broken("no such pool".to_owned()));
                    }
                    self.strays.doubles.send(request).await
                } else {
                    self.inner.send(request).await
                }
            };
            let changed = std::pin::pin!(changes.changed());
            match select(std::pin::pin!(answer), changed).await {
                Either::Left((answer, _)) => {
                    place.answered(is_away, names, answer.as_ref().is_ok_and(names_a_chain));
                    answer
                }
                Either::Right(_) => Err(TransportError::Broken("another server".to_owned())),
            }
        })
    }
}

/// An account as a request names it, in small letters.
fn in_requests(account: &Address) -> String {
    match account {
        Address::Solana(_) => account.to_string().to_lowercase(),
        Address::Evm(bytes) | Address::Tron(bytes) => hex::encode(bytes),
    }
}

/// Whether a request asks for the chain, and for nothing else.
fn names(request: &Request) -> bool {
    let Ok(body) = serde_json::from_slice::<Value>(&request.body) else { return false };
    let calls = body.as_array().map_or(std::slice::from_ref(&body), Vec::as_slice);
    calls.iter().all(|call| {
        let method = call["method"].as_str();
        method.is_some_and(|name| ["eth_chainId", "getGenesisHash"].contains(&name))
    })
}

fn names_a_chain(answer: &Response) -> bool {
    let body = serde_json::from_slice::<Value>(&answer.body).unwrap_or_default();
    body.get(0).unwrap_or(&body)["result"].is_string()
}
