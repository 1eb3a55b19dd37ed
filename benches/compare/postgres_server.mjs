// What a user would build instead: Node and PostgreSQL with a keyset index. Serves the same rows as
// a stream (a cursor of 250 rows at a time) and as pages. Also loads them.
// usage: node postgres_server.mjs load DATABASE_URL < rows.ndjson
//        node postgres_server.mjs serve DATABASE_URL PORT
import http from 'node:http';
import readline from 'node:readline';
import { once } from 'node:events';
import pg from 'pg';
import Cursor from 'pg-cursor';
import { from as copyFrom } from 'pg-copy-streams';

const [mode, url, port] = process.argv.slice(2);
const ROWS_AT_ONCE = 250;
const POOL = 16;

const COLUMNS = 'wallet, block_time, signature, leg, side, token, mint, amount_sol, amount, dex';
const SELECT = `SELECT signature, side, token, mint, amount_sol::text, amount::text, dex, block_time, leg FROM trades WHERE wallet = $1`;
const ORDER = 'ORDER BY block_time DESC, signature COLLATE "C" DESC, leg DESC';

function row(r) {
  return `{"signature":"${r.signature}","side":"${r.side}","token":${JSON.stringify(r.token)},"tokenMint":"${r.mint}",` +
    `"amountSol":${r.amount_sol},"amount":${r.amount},"dex":${JSON.stringify(r.dex)},"blockTime":"${r.block_time.toISOString().slice(0, 19)}+00:00"}`;
}
const place = (r) => Buffer.from(`${r.block_time.toISOString()},${r.signature},${r.leg}`).toString('base64url');

async function load() {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(`CREATE TABLE trades (wallet text NOT NULL, block_time timestamptz NOT NULL, signature text COLLATE "C" NOT NULL,
    leg int NOT NULL, side text NOT NULL, token text NOT NULL, mint text NOT NULL, amount_sol numeric, amount numeric, dex text NOT NULL)`);
  const copy = client.query(copyFrom(`COPY trades (${COLUMNS}) FROM STDIN`));
  const cell = (value) => value === null ? '\\N' : String(value).replace(/[\\\t\n\r]/g, ' ');
  let leg = 0, previous = '', wallet = '';
  for await (const line of readline.createInterface({ input: process.stdin })) {
    if (!line) continue;
    // Amounts stay text: a float would not be the same amount.
    const exact = line.replace(/"(amountSol|amount)":([0-9.]+)/g, '"$1":"$2"');
    const { trades = [], wallet: named } = JSON.parse(exact);
    wallet ||= named || 'w';
    for (const t of trades) {
      leg = t.signature === previous ? leg + 1 : 0;
      previous = t.signature;
      const cells = ['w', t.blockTime, t.signature, leg, t.side, t.token, t.tokenMint, t.amountSol, t.amount, t.dex];
      if (!copy.write(cells.map(cell).join('\t') + '\n')) await once(copy, 'drain');
    }
  }
  copy.end();
  await once(copy, 'finish');
  await client.query('ALTER TABLE trades ADD PRIMARY KEY (wallet, block_time, signature, leg)');
  await client.query('VACUUM ANALYZE trades');
  await client.end();
}

async function stream(pool, response) {
  const client = await pool.connect();
  const cursor = client.query(new Cursor(`${SELECT} ${ORDER}`, ['w']));
  response.writeHead(200, { 'content-type': 'application/x-ndjson' });
  try {
    for (;;) {
      const rows = await cursor.read(ROWS_AT_ONCE);
      if (rows.length === 0) break;
      const line = `{"trades":[${rows.map(row).join(',')}],"cursor":"${place(rows.at(-1))}"}\n`;
      if (!response.write(line)) await once(response, 'drain');
    }
    response.end('{"complete":true}\n');
  } finally {
    await cursor.close();
    client.release();
  }
}

async function page(pool, response, limit, after) {
  const [time, signature, leg] = after ? Buffer.from(after, 'base64url').toString().split(',') : ['9999-01-01', '', '0'];
  const { rows } = await pool.query({
    name: 'page',
    text: `${SELECT} AND (block_time, signature, leg) < ($2::timestamptz, $3::text COLLATE "C", $4::int) ${ORDER} LIMIT $5`,
    values: ['w', time, signature, leg, limit],
  });
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(`{"wallet":"w","trades":[${rows.map(row).join(',')}],"cursor":"${rows.length ? place(rows.at(-1)) : ''}"}`);
}

function serve() {
  const pool = new pg.Pool({ connectionString: url, max: POOL });
  http.createServer((request, response) => {
    const { searchParams } = new URL(request.url, 'http://x');
    const limit = searchParams.get('limit');
    const answer = limit ? page(pool, response, Number(limit), searchParams.get('cursor')) : stream(pool, response);
    answer.catch((error) => { console.error(error); response.destroy(); });
  }).listen(Number(port), '127.0.0.1', () => console.log('ready'));
}

await (mode === 'load' ? load() : serve());
