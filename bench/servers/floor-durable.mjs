/**
 * The floor of durable writes: bare `node:http`, and with a file a thread in which libsql commits each group of writes
 * as one row. A call waits for two writes, as a call with effects does in Troupe: `floor-durable.mjs none|FILE`.
 */
import { createServer } from 'node:http';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import Database from 'libsql';
import { served } from './telling.mjs';

/** Characters that a call writes before it runs, and before its response: as many as a marker and a reply have. */
const MARKER = 'm'.repeat(220);
const REPLY = 'r'.repeat(520);
/** Rows that are written over, so that the file stays small. */
const ROWS = 64;

/** Writes each group as one row, in a transaction of its own. */
function commitGroups(file) {
  const db = new Database(file);
  db.pragma('journal_mode=WAL');
  db.pragma('synchronous=FULL');
  db.exec('CREATE TABLE groups (id INTEGER PRIMARY KEY, data BLOB)');
  const insert = db.prepare('INSERT OR REPLACE INTO groups VALUES (?, ?)');
  let written = 0;
  parentPort?.on('message', (text) => {
    written += 1;
    insert.run(written % ROWS, Buffer.from(text));
    parentPort?.postMessage(written);
  });
}

/** Hands texts to the thread in groups. The next group is what has come while one was on its way. */
class Groups {
  #thread;
  #text = '';
  #waiting = [];
  #committing = [];
  #scheduled = false;

  constructor(file) {
    this.#thread = new Worker(new URL(import.meta.url), { workerData: file });
    this.#thread.on('message', () => this.#committed());
  }

  /** @param next called once the text is durable */
  write(text, next) {
    this.#text += text;
    this.#waiting.push(next);
    this.#flushSoon();
  }

  #flushSoon() {
    if (this.#scheduled || this.#committing.length > 0 || this.#waiting.length === 0) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#thread.postMessage(this.#text);
      this.#text = '';
      this.#committing = this.#waiting;
      this.#waiting = [];
    });
  }

  #committed() {
    const done = this.#committing;
    this.#committing = [];
    for (const next of done) next();
    this.#flushSoon();
  }
}

function serve(file) {
  const groups = file === 'none' ? undefined : new Groups(file);
  const server = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8');
    request.on('data', (/** @type {string} */ chunk) => {
      text += chunk;
    });
    request.on('end', () => {
      const { id, params } = JSON.parse(text);
      const answer = () => respond(response, id, params.arguments.text);
      if (groups) groups.write(MARKER, () => groups.write(REPLY, answer));
      else answer();
    });
  });
  server.listen(0, '127.0.0.1', () => {
    const address = server.address();
    if (typeof address === 'object') served(`http://127.0.0.1:${address?.port}/mcp`);
  });
}

function respond(response, id, text) {
  const body = JSON.stringify({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text }] } });
  response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) });
  response.end(body);
}

if (isMainThread) serve(process.argv[2] ?? 'none');
else commitGroups(workerData);
