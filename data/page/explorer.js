// Where people look at a transaction or a token: the site is the chain's, the path its kind's.

const PATHS = {
  solana: { transaction: "/tx/", token: "/token/" },
  evm: { transaction: "/tx/", token: "/token/" },
  tron: { transaction: "/#/transaction/", token: "/#/token20/" },
};

function link(chain, kind, id) {
  const paths = PATHS[chain?.family];
  if (!paths || !chain.explorer?.startsWith("https://")) return null;
  return chain.explorer + paths[kind] + encodeURIComponent(id);
}

export const transactionLink = (chain, signature) => link(chain, "transaction", signature);
export const tokenLink = (chain, mint) => link(chain, "token", mint);
