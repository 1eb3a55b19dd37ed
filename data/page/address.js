// Which family of chains an address belongs to, by its form alone. The server checks the rest.

const BASE58 = /^[1-9A-HJ-NP-Za-km-z]+$/;
const EVM = /^0x[0-9a-fA-F]{40}$/;
const TRON_CHARS = 34;
const SOLANA_CHARS = [32, 44];

/** `solana`, `evm` or `tron`, as `/v1/chains` names families; `null` for none of them. */
export function familyOf(address) {
  if (EVM.test(address)) return "evm";
  if (!BASE58.test(address)) return null;
  if (address.length === TRON_CHARS && address.startsWith("T")) return "tron";
  const [least, most] = SOLANA_CHARS;
  return address.length >= least && address.length <= most ? "solana" : null;
}
