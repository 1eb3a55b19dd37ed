#!/usr/bin/env python3
"""Shows the lab's EVM node as a Tron node: same contracts and events, Tron's wire formats.

    python3 tron_facade.py EVM_NODE [--port P] [--no-internal] [--no-index] [--suspend-every N]

SunSwap v2 and v3 are Uniswap's contracts, so the lab's trades are what Tron's would be. Everything is read once at the
start; then TronGrid v1 (unless --no-index), the node's HTTP interface and /jsonrpc are served. The wrapped coin's address
becomes WTRX; a wei stands for a sun. Shapes: tronprotocol's node HTTP documentation, TronGrid's account endpoints.
"""
import argparse, hashlib, json, sys, urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlparse

TRANSFER = "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
WETH, WTRX = "c02aaa39b223fe8d0a0e5c4f27ead9083c756cc2", "891cdb91d149f23b1a45d9c5ca78a88d0cb44c18"
B58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
CHAIN_ID = "0x2b6653dc"
LOG_BLOCKS_MAX = 5000
SUSPENDED = "The key exceeds the frequency limit(15), and the query server is suspended for 1s"


def t_address(hex20):
    raw = b"\x41" + bytes.fromhex(hex20)
    raw += hashlib.sha256(hashlib.sha256(raw).digest()).digest()[:4]
    n, out = int.from_bytes(raw, "big"), ""
    while n:
        n, r = divmod(n, 58)
        out = B58[r] + out
    return out


def hex20(address):
    """`T…`, `41…` or `0x…` as 40 hex digits."""
    if address.startswith("T"):
        n = 0
        for c in address:
            n = n * 58 + B58.index(c)
        return n.to_bytes(25, "big")[1:21].hex()
    return address.lower().removeprefix("0x")[-40:]


class Evm:
    def __init__(self, url):
        self.url = url

    def batch(self, calls):
        body = [{"jsonrpc": "2.0", "id": i, "method": m, "params": p} for i, (m, p) in enumerate(calls)]
        request = urllib.request.Request(self.url, json.dumps(body).encode(), {"content-type": "application/json"})
        text = urllib.request.urlopen(request).read().decode().replace(WETH, WTRX)
        answers = sorted(json.loads(text), key=lambda a: a["id"])
        return [a["result"] for a in answers]

    def call(self, to, data):
        to = WETH if to == WTRX else to
        body = {"jsonrpc": "2.0", "id": 1, "method": "eth_call", "params": [{"to": "0x" + to, "data": "0x" + data}, "latest"]}
        request = urllib.request.Request(self.url, json.dumps(body).encode(), {"content-type": "application/json"})
        return json.load(urllib.request.urlopen(request)).get("result")


def inner_calls(frame, found):
    """Every call below the outermost, in order; those of a frame that failed are rejected."""
    for call in frame.get("calls") or []:
        if call["type"] in ("CALL", "CREATE", "CREATE2") and call.get("to"):
            value = int(call.get("value", "0x0"), 16)
            found.append({
                "hash": hashlib.sha256(f"{len(found)}{call['to']}".encode()).hexdigest(),
                "caller_address": "41" + hex20(call["from"]), "transferTo_address": "41" + hex20(call["to"]),
                "callValueInfo": [{"callValue": value} if value else {}], "note": call["type"].lower().encode().hex(),
                **({"rejected": True} if call.get("error") or frame.get("rejected") else {}),
            })
        inner_calls({**call, "rejected": bool(call.get("error")) or frame.get("rejected", False)}, found)
    return found


class Chain:
    def __init__(self, url, internal):
        self.evm, self.txs, self.infos, self.blocks = Evm(url), {}, {}, {}
        head = int(self.evm.batch([("eth_blockNumber", [])])[0], 16)
        for start in range(0, head + 1, 200):
            calls = [("eth_getBlockByNumber", [hex(n), True]) for n in range(start, min(start + 200, head + 1))]
            for block in self.evm.batch(calls):
                self.add_block(block, internal)
        self.head = head

    def add_block(self, block, internal):
        number, seconds = int(block["number"], 16), int(block["timestamp"], 16)
        self.blocks[number] = block
        hashes = [tx["hash"] for tx in block["transactions"]]
        if not hashes:
            return
        receipts = self.evm.batch([("eth_getTransactionReceipt", [h]) for h in hashes])
        traces = self.evm.batch([("debug_traceTransaction", [h, {"tracer": "callTracer"}]) for h in hashes])
        for tx, receipt, trace in zip(block["transactions"], receipts, traces):
            self.add(tx, receipt, trace, number, seconds * 1000, internal)

    def add(self, tx, receipt, trace, number, millis, internal):
        txid, good = tx["hash"][2:], receipt["status"] == "0x1"
        result = "SUCCESS" if good else "REVERT"
        value = {"owner_address": "41" + hex20(tx["from"])}
        amount = int(tx["value"], 16)
        if tx["to"] and tx["input"] == "0x":
            kind = "TransferContract"
            value |= {"to_address": "41" + hex20(tx["to"]), "amount": amount}
        elif tx["to"]:
            kind = "TriggerSmartContract"
            value |= {"contract_address": "41" + hex20(tx["to"]), "data": tx["input"][2:], **({"call_value": amount} if amount else {})}
        else:
            kind = "CreateSmartContract"
        contract = {"type": kind, "parameter": {"value": value, "type_url": f"type.googleapis.com/protocol.{kind}"}}
        self.txs[txid] = {
            "ret": [{"contractRet": result}], "signature": ["00" * 65], "txID": txid, "raw_data_hex": "",
            "raw_data": {"contract": [contract], "timestamp": millis - 3000, "expiration": millis + 60000, "fee_limit": 500000000},
            "block_timestamp": millis, "blockNumber": number,
        }
        info = {"id": txid, "fee": 13000000, "blockNumber": number, "blockTimeStamp": millis, "contractResult": [""],
                "receipt": {"net_usage": 345, **({"result": result} if kind != "TransferContract" else {})}}
        if kind == "TriggerSmartContract":
            info["contract_address"] = value["contract_address"]
        if not good:
            info["result"] = "FAILED"
        logs = [{"address": hex20(l["address"]), "topics": [t[2:] for t in l["topics"]], **({"data": l["data"][2:]} if l["data"] != "0x" else {})}
                for l in receipt["logs"]]
        if logs:
            info["log"] = logs
        calls = inner_calls(trace, [])
        self.txs[txid]["touched"] = {hex20(c[k]) for c in calls for k in ("caller_address", "transferTo_address")} | {
            hex20(value[k]) for k in ("owner_address", "to_address", "contract_address") if k in value}
        if calls and internal:
            info["internal_transactions"] = calls
        self.infos[txid] = info

    def transfers(self, wallet):
        for txid, info in self.infos.items():
            for log in info.get("log") or []:
                if log["topics"][:1] == [TRANSFER] and len(log["topics"]) == 3:
                    source, target = (t[-40:] for t in log["topics"][1:])
                    if wallet in (source, target):
                        yield {"transaction_id": txid, "block_timestamp": info["blockTimeStamp"], "from": t_address(source),
                               "to": t_address(target), "type": "Transfer", "value": str(int(log["data"], 16)),
                               "token_info": {"address": t_address(log["address"])}}

    def list(self, parts, query):
        wallet = hex20(parts[2])
        if parts[4:] == ["trc20"]:
            rows = list(self.transfers(wallet))
        else:
            rows = [{k: v for k, v in tx.items() if k != "touched"} for tx in self.txs.values() if wallet in tx["touched"]]
        low, high = int(query.get("min_timestamp", 0)), int(query.get("max_timestamp", 1 << 62))
        rows = [r for r in rows if low <= r["block_timestamp"] <= high]
        rows.sort(key=lambda r: (r["block_timestamp"], r.get("txID") or r["transaction_id"]), reverse=not query.get("order_by", "").endswith("asc"))
        at, limit = int(query.get("fingerprint", 0)), min(int(query.get("limit", 20)), 200)
        meta = {"page_size": len(rows[at:at + limit])}
        if at + limit < len(rows):
            meta["fingerprint"] = str(at + limit)
        return {"data": rows[at:at + limit], "success": True, "meta": meta}

    def block(self, number):
        block = self.blocks.get(number)
        if block is None:
            return {}
        raw = {"number": number, "timestamp": int(block["timestamp"], 16) * 1000, "parentHash": block["parentHash"][2:]}
        txs = [{k: v for k, v in self.txs[t["hash"][2:]].items() if k != "touched"} for t in block["transactions"]]
        return {"blockID": block["hash"][2:], "block_header": {"raw_data": raw}, "transactions": txs}

    def wallet(self, name, body):
        if name == "gettransactionbyid":
            return {k: v for k, v in self.txs.get(body.get("value"), {}).items() if k not in ("touched", "block_timestamp", "blockNumber")}
        if name == "gettransactioninfobyid":
            return self.infos.get(body.get("value"), {})
        if name == "getaccount":
            address = hex20(body.get("address") or "")
            times = [tx["block_timestamp"] for tx in self.txs.values() if address in tx["touched"]]
            return {"address": t_address(address), "create_time": min(times)} if times else {}
        if name == "getnowblock":
            return self.block(self.head)
        if name == "getblockbynum":
            return self.block(int(body.get("num", -1)))
        if name == "triggerconstantcontract":
            data = {"symbol()": "95d89b41", "decimals()": "313ce567", "name()": "06fdde03"}.get(body.get("function_selector"), body.get("data") or "")
            answer = self.evm.call(hex20(body["contract_address"]), data)
            return {"result": {"result": True}, "constant_result": [answer[2:]]} if answer else {
                "result": {"result": True, "message": b"REVERT opcode executed".hex()}, "constant_result": [""]}
        return None

    def rpc(self, method, params):
        if method == "eth_blockNumber":
            return hex(self.head)
        if method == "eth_chainId":
            return CHAIN_ID
        if method == "eth_call":
            return self.evm.call(hex20(params[0]["to"]), (params[0].get("data") or params[0].get("input"))[2:])
        if method == "eth_getLogs":
            number = lambda tag: int(tag, 16) if tag.startswith("0x") else self.head
            low, high = number(params[0].get("fromBlock", "latest")), number(params[0].get("toBlock", "latest"))
            if high - low >= LOG_BLOCKS_MAX:
                raise ValueError(f"exceed max block range: {LOG_BLOCKS_MAX}")
            return [log for info in self.infos.values() if low <= info["blockNumber"] <= high for log in self.logs(info, params[0].get("topics") or [])]
        raise ValueError(f"the method {method} does not exist/is not available")

    def logs(self, info, wanted):
        for at, log in enumerate(info.get("log") or []):
            topics = ["0x" + t for t in log["topics"]]
            fits = [w is None or (i < len(topics) and topics[i] in ([w] if isinstance(w, str) else w)) for i, w in enumerate(wanted)]
            if all(fits):
                yield {"address": "0x" + log["address"], "topics": topics, "data": "0x" + log.get("data", ""), "logIndex": hex(at), "removed": False,
                       "blockNumber": hex(info["blockNumber"]), "transactionHash": "0x" + info["id"], "transactionIndex": "0x0"}


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("node")
    ap.add_argument("--port", type=int, default=0)
    ap.add_argument("--no-internal", action="store_true", help="as a node that does not keep internal transactions")
    ap.add_argument("--no-index", action="store_true", help="a plain node: no account lists")
    ap.add_argument("--suspend-every", type=int, default=0, help="each Nth request is refused for its frequency")
    a = ap.parse_args()
    chain, asked = Chain(a.node, not a.no_internal), [0]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def reply(self, value, status=200):
            raw = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(raw)))
            self.end_headers()
            try:
                self.wfile.write(raw)
            except BrokenPipeError:
                # Answers that nothing waits for any more.
                self.close_connection = True

        def answer(self, query, body):
            parts = urlparse(self.path).path.strip("/").split("/")
            asked[0] += 1
            if a.suspend_every and asked[0] % a.suspend_every == 0:
                return self.reply({"Error": SUSPENDED} if parts[0] != "v1" else {"success": False, "error": SUSPENDED, "statusCode": 403}, 403)
            if parts == ["jsonrpc"]:
                one = not isinstance(body, list)
                answers = []
                for call in [body] if one else body:
                    try:
                        answers.append({"jsonrpc": "2.0", "id": call["id"], "result": chain.rpc(call["method"], call.get("params") or [])})
                    except ValueError as error:
                        answers.append({"jsonrpc": "2.0", "id": call["id"], "error": {"code": -32602 if "range" in str(error) else -32601, "message": str(error)}})
                return self.reply(answers[0] if one else answers)
            found = None
            if parts[0] == "v1" and parts[1:2] == ["accounts"] and parts[3:4] == ["transactions"] and not a.no_index:
                found = chain.list(parts, query)
            elif parts[0] in ("wallet", "walletsolidity"):
                found = chain.wallet(parts[-1], {**query, **(body if isinstance(body, dict) else {})})
            self.reply(found if found is not None else {"error": "not found"}, 200 if found is not None else 404)

        def query(self):
            return {k: v[0] for k, v in parse_qs(urlparse(self.path).query).items()}

        def do_GET(self):
            self.answer(self.query(), {})

        def do_POST(self):
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            self.answer(self.query(), json.loads(raw or b"{}"))

    class Server(ThreadingHTTPServer):
        daemon_threads, request_queue_size = True, 256

    server = Server(("127.0.0.1", a.port), Handler)
    print(f"READY http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    sys.exit(main())
