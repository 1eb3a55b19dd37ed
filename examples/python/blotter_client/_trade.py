"""One row of a wallet's history."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal, Mapping


@dataclass(frozen=True, slots=True)
class Trade:
    """One buy or sell of one token. A swap of two tokens is two trades with one signature."""

    signature: str
    side: Literal["buy", "sell"]
    #: The symbol: no key, symbols collide.
    token: str
    token_mint: str
    #: Value in the chain's own coin; ``None`` where it is unknown.
    amount_sol: Decimal | None
    #: Token quantity; ``None`` where it is unknown.
    amount: Decimal | None
    dex: str
    block_time: datetime

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Trade:
        def decimal(value: Any) -> Decimal | None:
            return None if value is None else Decimal(value)

        return cls(
            signature=row["signature"],
            side=row["side"],
            token=row["token"],
            token_mint=row["tokenMint"],
            amount_sol=decimal(row["amountSol"]),
            amount=decimal(row["amount"]),
            dex=row["dex"],
            block_time=datetime.fromisoformat(row["blockTime"]),
        )
