/** The webhooks of a server: verifies what arrives, answers it once it is durable, and shows what became of it. */

import type { WebhookAnswer, WebhookPost, WebhookRoute } from '../../core/http/webhook-route.ts';
import { within } from '../../core/kernel/clock.ts';
import { errorFields } from '../../core/kernel/operator-log.ts';
import { sha256 } from '../../core/kernel/sha256.ts';
import { TokenBuckets } from '../../core/kernel/token-bucket.ts';
import { isObject, type JsonValue, messageOf, shortened } from '../../core/protocol/json.ts';
import * as option from '../../core/protocol/option-rows.ts';
import type { Core } from '../../core/server/feature.ts';
import { type DefinedHook, defineHook, type HookOptions } from './define-hook.ts';
import { contentOf, HookBodyError, jsonIn, readContent } from './hook-content.ts';
import type { StoredDelivery } from './hook-record.ts';
import type { HookProof, HookRequest } from './hook-request.ts';
import { HookTable } from './hook-table.ts';

/** A delivery in lists: what became of it, without its body. */
export type HookRecord = Omit<StoredDelivery, 'key' | 'content'>;

/** Chooses deliveries. */
export interface HookQuery {
  /** Default: all. */
  readonly state?: HookRecord['state'];
  /** Most deliveries to return, from 1 to 1,000. Default 100. */
  readonly limit?: number;
}

/** A webhook that a program has registered. */
export interface Hook {
  readonly path: string;
  /**
   * The last deliveries of this node, the newest first: those that wait, and up to 200 that are done and 200 that are dead.
   *
   * @throws {TypeError | RangeError} for an invalid query
   * @throws {StoreError}
   * @example for (const { ref, error } of await hook.deliveries({ state: 'dead' })) console.error(ref, error);
   */
  deliveries(query?: HookQuery): Promise<readonly HookRecord[]>;
  /**
   * The body of a delivery as it came; undefined if it is not stored any more.
   *
   * @param ref as `deliveries` returns it
   * @throws {StoreError}
   * @example const body = await hook.body(ref);
   */
  body(ref: string): Promise<Uint8Array | undefined>;
  /**
   * Sends a delivery to the handler once more, as a delivery of its own with another `key`. Any node may have received it.
   *
   * @param ref as `deliveries` returns it
   * @returns the `ref` of the new delivery; undefined if that one is not stored any more, or too many wait
   * @throws {StoreError}
   * @example for (const { ref } of await hook.deliveries({ state: 'dead' })) await hook.again(ref);
   */
  again(ref: string): Promise<string | undefined>;
}

/** Milliseconds in which a verifier must decide. */
const VERIFY_MS = 5_000;
const MAX_HOOKS = 1_000;
const MAX_TEXT = 256;
/** Longest answer to a request that is no delivery. */
const MAX_REPLY = 4_096;
const MAX_LISTED = 1_000;
/** RFC 9110 section 11.6.1 requires a challenge. */
const REJECTED: WebhookAnswer = { status: 401, headers: { 'www-authenticate': 'Signature' } };

/** A GET that the verifier does not answer. */
const NO_QUESTION: WebhookAnswer = {
  status: 405,
  text: 'method: expected POST, got GET\n',
  headers: { allow: 'POST' },
};

const QUERY: option.Rows<HookQuery> = {
  state: option.oneOf('waiting', 'running', 'done', 'dead'),
  limit: option.whole(1, MAX_LISTED),
};

/** A webhook, and its rate. */
interface RegisteredHook extends WebhookRoute {
  readonly defined: DefinedHook;
}

export class RegisteredHooks {
  readonly table: HookTable;
  readonly #core: Core;
  readonly #hooks = new Map<string, RegisteredHook>();
  readonly #counted: (outcome: string) => void;

  constructor(core: Core) {
    this.#core = core;
    this.table = new HookTable(core, (path) => this.#hooks.get(path)?.defined);
    this.#counted = core.system.metrics.counter(
      'troupe.hook.requests',
      '{request}',
      'Requests to webhooks by their outcome.',
      'troupe.outcome',
    );
  }

  /** Registers a webhook. @throws {DefinitionError} */
  register(path: string, options: HookOptions): Hook {
    this.#add(defineHook(path, options, (each) => this.#hooks.has(each) || this.#hooks.size >= MAX_HOOKS));
    const { table } = this;
    return {
      path,
      deliveries: (query = {}) => this.list(query, path),
      body: (ref) => table.body(path, ref),
      again: (ref) => table.again(path, ref),
    };
  }

  /** The webhooks with their options. */
  get defined(): readonly DefinedHook[] {
    return [...this.#hooks.values()].map(({ defined }) => defined);
  }

  /** Takes the webhooks of a program in place of those of its last load: for `troupe dev`. */
  adopt(all: readonly DefinedHook[]): void {
    this.#hooks.clear();
    for (const defined of all) this.#add(defined);
  }

  #add(defined: DefinedHook): void {
    const { path } = defined;
    const rates = new TokenBuckets(defined.rate);
    const { clock } = this.#core.system;
    this.#hooks.set(path, {
      defined,
      maxBytes: defined.maxBytes,
      tooOften: (address) => {
        const now = clock.now();
        const retryMs = rates.of(address, now).take(now);
        const { perSecond, burst } = defined.rate;
        const message = `rate limit exceeded: ${perSecond} requests a second, ${burst} at once (rate of the webhook)`;
        return retryMs === 0 ? undefined : { option: 'webhook.rate', message, retryMs };
      },
      receive: (post) => this.#receive(defined, post),
    });
    this.table.begin(path);
  }

  /** The webhook at a path; one slash at its end makes no difference. */
  find(path: string): WebhookRoute | undefined {
    return this.#hooks.get(path) ?? (path.endsWith('/') ? this.#hooks.get(path.slice(0, -1)) : undefined);
  }

  /** @throws {TypeError | RangeError | StoreError} */
  async list(query: HookQuery, path?: string): Promise<readonly HookRecord[]> {
    option.check('deliveries: ', query, QUERY);
    const found = await this.table.list(path, query.state, query.limit ?? 100);
    return found.map(({ key: _key, content: _content, ...record }) => record);
  }

  /** The body of a delivery of any webhook of this node: parsed if it can be, and the number of its bytes; undefined if it is not stored. */
  async content(ref: string): Promise<{ readonly body: JsonValue | undefined; readonly bytes: number } | undefined> {
    const found = await this.table.find(ref);
    const bytes = found && (await this.table.body(found.path, ref));
    return bytes && { body: readContent(found.content, bytes), bytes: bytes.length };
  }

  /** See {@link Hook.again}, for any webhook of this node. @throws {StoreError} */
  async again(ref: string): Promise<string | undefined> {
    const found = await this.table.find(ref);
    return found && this.table.again(found.path, ref);
  }

  async #receive(hook: DefinedHook, post: WebhookPost): Promise<WebhookAnswer> {
    const [outcome, answer] = await this.#answer(hook, post);
    this.#counted(outcome);
    return answer;
  }

  /** The outcome for the metrics, and the answer. Never rejects. */
  async #answer(hook: DefinedHook, post: WebhookPost): Promise<readonly [outcome: string, WebhookAnswer]> {
    const { clock } = this.#core.system;
    const type = post.values('content-type').join(', ');
    const content = contentOf(type, post.body);
    const request: HookRequest = {
      ...{ method: post.method, path: hook.path, query: post.query, body: post.body, now: this.table.date },
      header: (name) => (post.values(name).length === 0 ? undefined : post.values(name).join(', ')),
      only: (name) => (post.values(name).length === 1 ? post.values(name)[0] : undefined),
      json: () => jsonIn(content, post.body),
    };
    let proof: HookProof | undefined;
    try {
      const late = (): Error => new Error(`the verifier has not decided within ${VERIFY_MS} ms`);
      proof = await within((async () => hook.verify(request))(), clock, VERIFY_MS, late);
    } catch (error) {
      this.#failed(`the verifier of webhook ${hook.path} failed, and its request is rejected`, error);
    }
    if (!isObject(proof)) return ['rejected', post.method === 'GET' ? NO_QUESTION : REJECTED];
    const { reply, once, id, type: kind } = readProof(proof);
    if (reply === undefined && post.method === 'GET') return ['rejected', NO_QUESTION];
    if (reply !== undefined) return ['answered', { status: 200, text: reply }];
    try {
      readContent(content, post.body);
      const key = sha256(`${hook.path}\n${once ?? `body ${sha256(post.body)}`}`);
      const delivery = { id: id ?? once ?? key, key, type: kind, content, resent: undefined };
      const arrival = await this.table.arrive(hook.path, delivery, post.body);
      if (arrival === 'full')
        return [
          'full',
          { status: 503, text: 'too many deliveries wait. Send it again later\n', headers: { 'retry-after': '5' } },
        ];
      return [arrival, { status: 200 }];
    } catch (error) {
      if (error instanceof HookBodyError) return ['invalid', { status: 400, text: `${error.message}\n` }];
      this.#failed(`webhook ${hook.path}: a delivery could not be stored, and its sender must send it again`, error);
      return ['failed', { status: 503, headers: { 'retry-after': '5' } }];
    }
  }

  /** A stranger can cause it as often as it likes. */
  #failed(what: string, error: unknown): void {
    this.table.log('error', `${what}: ${messageOf(error)}`, errorFields('program', error));
  }
}

/** A verifier of a program may return anything. */
function readProof({ once, id, type, reply }: HookProof): HookProof {
  const text = (value: unknown, most: number): string | undefined =>
    typeof value === 'string' && value !== '' ? shortened(value, most) : undefined;
  return {
    // Not shortened: it is hashed, and two names may begin alike.
    once: typeof once === 'string' && once !== '' ? once : undefined,
    ...{ id: text(id, MAX_TEXT), type: text(type, MAX_TEXT) },
    reply: typeof reply === 'string' ? shortened(reply, MAX_REPLY) : undefined,
  };
}
