/** Clients of a cluster, of both eras, that repeat a call with its key until they have its answer, and keep the books. */
import { cellIn } from '../../../src/core/protocol/cell.ts';
import { modern } from '../../core/http/modern.ts';
import { elapse, HANG_MS } from '../../harness/wait.ts';
import { Patience } from './patience.ts';

type Fields = Readonly<Record<string, unknown>>;

/** The first wait for one response. */
const ANSWER_MS = 1_500;
const RETRY_MS = 5;
/** Entries of a ledger before its client begins another: a call writes all of them, and must cost the same after hours. */
const MAX_ENTRIES = 200;
const ACCEPTS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

/** What went wrong that never may. */
export class Violations {
  readonly found: string[] = [];
  add(what: string): void {
    this.found.push(what);
  }
}

/** One principal with one ledger, by one revision. */
export abstract class LedgerClient {
  readonly principal: string;
  readonly url: string;
  readonly violations: Violations;
  /** The nonces that were acknowledged, of the present ledger. */
  readonly acknowledged = new Set<string>();
  /** The call that is on its way, its attempts, and the end of the last one: what a client that is never served waits for. */
  pending = '';
  #handle: string | undefined;
  #ledgers = 0;
  #adding = 0;
  #turningOver: Promise<void> | undefined;
  #nonces = 0;

  constructor(url: string, principal: string, violations: Violations) {
    this.url = url;
    this.principal = principal;
    this.violations = violations;
  }

  /** The cell of its ledger. */
  get cell(): number {
    return cellIn(this.handle) ?? -1;
  }

  get handle(): string {
    if (this.#handle === undefined) throw new Error(`${this.principal} has no ledger`);
    return this.#handle;
  }

  async create(): Promise<void> {
    this.#ledgers += 1;
    const { handle } = await this.until('ledger_create', {
      idempotencyKey: `${this.principal} create ${this.#ledgers}`,
    });
    this.#handle = String(handle).replace(/^.*\//, '');
  }

  /** Adds one entry. Resolves when that is acknowledged. */
  async add(): Promise<void> {
    // A comparison beside a call in flight would miss its entry.
    if (this.acknowledged.size >= MAX_ENTRIES && this.#adding === 0) this.#turningOver ??= this.#turnOver();
    await this.#turningOver;
    this.#adding += 1;
    this.#nonces += 1;
    const nonce = `${this.principal}-${this.#nonces}`;
    await this.until('ledger_add', { handle: this.#handle, nonce, idempotencyKey: nonce });
    this.acknowledged.add(nonce);
    this.#adding -= 1;
  }

  /** Compares the ledger with what was acknowledged: each entry once. */
  async check(): Promise<void> {
    const { state, entries: direct, ...rest } = await this.until('ledger_get', { handle: this.#handle });
    const view = Object(rest.view ?? rest.data ?? rest);
    const entries: readonly string[] = Array.isArray(direct) ? direct : (view.entries ?? []);
    const known = new Set(entries);
    if (known.size !== entries.length)
      this.violations.add(
        `${this.principal}: ${entries.length - known.size} entries are there twice (${String(state)})`,
      );
    const lost = [...this.acknowledged].filter((nonce) => !known.has(nonce));
    if (lost.length > 0) this.violations.add(`${this.principal}: acknowledged and lost: ${lost.join()}`);
  }

  /** Ends a ledger as the test ends: with a comparison. */
  async #turnOver(): Promise<void> {
    await this.check();
    this.acknowledged.clear();
    await this.create();
    this.#turningOver = undefined;
  }

  /** Repeats a call until it has an answer. @returns its structured content */
  protected async until(name: string, args: Fields): Promise<Fields> {
    const patience = new Patience(ANSWER_MS);
    for (let attempt = 1; ; attempt += 1) {
      let end = 'without a result';
      const result = await this.ask(name, args, patience.ms).catch((error: unknown) => {
        end = String(error);
        patience.failed(error);
        return undefined;
      });
      this.pending = `${name} ${JSON.stringify(args)}: attempt ${attempt}: ${end} ${this.lastText}`;
      if (result?.isError === true)
        this.violations.add(`${this.principal}: ${name}: ${JSON.stringify(result.content)}`);
      if (result) return Object(result.structuredContent);
      await elapse(RETRY_MS, 'a client waits before it calls again');
    }
  }

  /** The last response without a result. */
  protected lastText = '';

  /** One attempt. @returns undefined if it has to be repeated */
  protected abstract ask(name: string, args: Fields, ms: number): Promise<Fields | undefined>;
}

/** 2026-07-28: each request stands alone. */
export class ModernClient extends LedgerClient {
  /** Calls another tool, once, however long its response takes. @throws {Error} if it gives no result */
  async run(name: string, args: Fields): Promise<void> {
    if (!(await this.ask(name, args, HANG_MS))) throw new Error(`${name}: no result: ${this.lastText}`);
  }

  protected async ask(name: string, args: Fields, ms: number): Promise<Fields | undefined> {
    const { headers, body } = modern('tools/call', { params: { name, arguments: args } });
    const own = { ...flat(headers), authorization: this.principal };
    const { result, status, text } = await post(this.url, own, body, ms);
    this.lastText = result ? '' : `${status} ${text}`;
    return result;
  }
}

/** 2025-11-25: requests in a session, which must outlive every node. */
export class LegacyClient extends LedgerClient {
  #session: string | undefined;
  #ids = 0;

  async open(): Promise<void> {
    const patience = new Patience(ANSWER_MS);
    while (this.#session === undefined) {
      const params = {
        protocolVersion: '2025-11-25',
        capabilities: {},
        clientInfo: { name: 'stage', version: '1.0.0' },
      };
      const answer = await this.#post('initialize', params, patience.ms).catch((error: unknown) => {
        patience.failed(error);
        return undefined;
      });
      if (answer?.session) this.#session = answer.session;
    }
    await post(this.url, this.#headers(), { jsonrpc: '2.0', method: 'notifications/initialized' }, patience.ms).catch(
      () => {},
    );
  }

  /** The cell of its session. */
  get sessionCell(): number {
    return cellIn(this.#session ?? '') ?? -1;
  }

  /** A call that reports progress: its response as it comes. */
  stream(name: string, args: Fields): Promise<Response> {
    this.#ids += 1;
    const params = { name, arguments: args, _meta: { progressToken: this.#ids } };
    return fetch(this.url, {
      method: 'POST',
      headers: { ...ACCEPTS, ...this.#headers() },
      body: JSON.stringify({ jsonrpc: '2.0', id: this.#ids, method: 'tools/call', params }),
    });
  }

  protected async ask(name: string, args: Fields, ms: number): Promise<Fields | undefined> {
    const { status, result, text } = await this.#post('tools/call', { name, arguments: args }, ms);
    this.lastText = result ? '' : `${status} ${text}`;
    if (status === 404) {
      this.violations.add(`${this.principal}: its session is unknown`);
      this.#session = undefined;
      await this.open();
    }
    return result;
  }

  #post(method: string, params: Fields, ms: number): ReturnType<typeof post> {
    this.#ids += 1;
    return post(this.url, this.#headers(), { jsonrpc: '2.0', id: this.#ids, method, params }, ms);
  }

  #headers(): Record<string, string> {
    return {
      authorization: this.principal,
      ...(this.#session === undefined ? {} : { 'mcp-session-id': this.#session, 'mcp-protocol-version': '2025-11-25' }),
    };
  }
}

interface Answer {
  readonly status: number;
  readonly session: string | undefined;
  readonly result: Fields | undefined;
  readonly text: string;
}

/** One POST, and the result in its response. */
async function post(
  url: string,
  headers: Readonly<Record<string, string>>,
  body: unknown,
  ms: number,
): Promise<Answer> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { ...ACCEPTS, ...headers },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(ms),
  });
  const text = await response.text();
  const session = response.headers.get('mcp-session-id') ?? undefined;
  const result = response.ok && text !== '' ? resultIn(text) : undefined;
  return { status: response.status, session, result, text };
}

/** The result in a response: JSON, or the last event of a stream. */
function resultIn(text: string): Fields | undefined {
  const json = text.startsWith('{')
    ? text
    : (text
        .match(/^data: (\{.*)$/gm)
        ?.at(-1)
        ?.slice('data: '.length) ?? '{}');
  const { result } = JSON.parse(json);
  return result;
}

function flat(headers: Readonly<Record<string, unknown>> = {}): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])),
  );
}
