/**
 * Plays the transcripts of the client: a scripted server sends the lines with `←`, the client must send exactly those
 * with `→`, and `▶` lines are the program. Everything that crosses the wire is checked against the official schemas.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { type Changes, type Channel, type ChannelHost, type Client, ClientError, connect } from 'troupe/client';
import * as assert from 'uvu/assert';
import { isObject, type JsonObject, type JsonValue } from '../../src/core/protocol/json.ts';
import type { Revision } from '../../src/core/protocol/revisions.ts';
import { difference, fillIn, type Values } from '../../src/testing/match-json.ts';
import { readJson } from '../../src/testing/test-json.ts';
import { parseTranscript, SimulatedClock, type Step, settled } from '../../src/testing/testing.ts';
import { suite } from '../harness/door.ts';
import { inTime } from '../harness/wait.ts';
import { clientWireChecker } from '../harness/wire-client.ts';

const FOLDER = new URL('transcripts/', import.meta.url);

/** The revisions that the transcripts of a folder are played in. */
const FOLDERS: Readonly<Record<string, readonly Revision[]>> = {
  legacy: ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'],
  'from-2025-06-18': ['2025-06-18', '2025-11-25'],
  '2025-11-25': ['2025-11-25'],
  modern: ['2026-07-28'],
};

/** What every modern request of this client describes, besides its progress token. */
const META: JsonObject = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'reader', version: '1.0.0' },
  'io.modelcontextprotocol/clientCapabilities': {
    elicitation: { form: {}, url: {} },
    sampling: {},
    roots: { listChanged: true },
    extensions: { 'io.modelcontextprotocol/tasks': {} },
  },
};

type Act =
  | { readonly kind: 'step'; readonly step: Step }
  | { readonly kind: 'program'; readonly line: number; readonly verb: string; readonly args: readonly JsonValue[] };

/** A `▶` line: a verb, and its arguments as JSON values. */
function readAction(line: number, text: string): Act {
  const [, verb = '', rest = ''] = /^▶ (\w+) ?(.*)$/.exec(text) ?? [];
  const args = readJson(`[${rest}]`);
  if (!Array.isArray(args)) throw new SyntaxError(`line ${line}: expected arguments in JSON, got ${rest}`);
  return { kind: 'program', line, verb, args };
}

function readClientTranscript(text: string): { readonly why: string; readonly acts: readonly Act[] } {
  const lines = text.split('\n');
  const acts: Act[] = [];
  let block: string[] = [];
  const [why = ''] = lines;
  const flush = (before: number): void => {
    if (block.some((line) => /^[→←↯⏱∅]/u.test(line))) {
      const { steps } = parseTranscript(`Steps.\n\n${block.join('\n')}`);
      const offset = before - block.length - 2;
      for (const step of steps) acts.push({ kind: 'step', step: { ...step, line: step.line + offset } });
    }
    block = [];
  };
  for (const [index, line] of lines.entries()) {
    if (index === 0) continue;
    if (line.startsWith('▶')) {
      flush(index);
      acts.push(readAction(index + 1, line));
    } else block.push(line);
  }
  flush(lines.length);
  return { why, acts };
}

/** The channel of the scripted server: keeps what the client sends until a line expects it. */
class ScriptedChannel implements Channel {
  readonly kind = 'stream';
  readonly sent: string[] = [];
  #host: ChannelHost | undefined;
  #arrived = (): void => {};
  closed = false;

  open(host: ChannelHost): void {
    this.#host = host;
    host.send({ type: 'opened' });
  }
  send({ text }: { readonly text: string }): void {
    this.sent.push(text);
    this.#arrived();
  }
  abandon(): void {}
  answered(): void {}
  async close(): Promise<void> {
    this.closed = true;
  }
  say(text: string): void {
    this.#host?.send({ type: 'text', text, about: undefined });
  }
  /** The next message of the client. @throws Error if none comes */
  async next(expected: string): Promise<string> {
    if (this.sent.length === 0) {
      const arrived = new Promise<void>((resolve) => {
        this.#arrived = resolve;
      });
      await inTime(arrived, `→ ${expected}; the client sent nothing`);
    }
    return this.sent.shift() ?? '';
  }
}

/** One play of one transcript. */
class Play {
  readonly #clock = new SimulatedClock();
  readonly #channel = new ScriptedChannel();
  readonly #values: Values;
  readonly #check: (direction: 'in' | 'out', text: string) => void;
  /** Outcomes that no line has looked at, oldest first. */
  readonly #outcomes: Promise<JsonValue>[] = [];
  #client: Client | undefined;
  #changes: Changes | undefined;
  #abort = new AbortController();

  constructor(revision: Revision) {
    this.#values = new Map<string, JsonValue>([
      ['revision', revision],
      ['meta', META],
    ]);
    this.#check = clientWireChecker(revision);
  }

  async act(act: Act): Promise<void> {
    if (act.kind === 'program') return this.#program(act.verb, act.args);
    const { step } = act;
    switch (step.kind) {
      case 'send': {
        const shown = JSON.stringify(step.message);
        const text = await this.#channel.next(shown);
        this.#check('in', text);
        const found = difference(step.message, readJson(text), this.#values);
        if (found !== undefined) throw new Error(`${found}\n  expected → ${shown}\n  got      → ${text}`);
        return;
      }
      case 'expect': {
        const text = JSON.stringify(fillIn(step.message, this.#values));
        this.#check('out', text);
        return this.#channel.say(text);
      }
      case 'raw':
        return this.#channel.say(step.text);
      case 'advance':
        return this.#clock.advance(step.ms);
      case 'nothing':
        await settled();
        return assert.equal(this.#channel.sent, [], 'expected that the client sends nothing');
    }
  }

  async end(): Promise<void> {
    await settled();
    assert.equal(this.#channel.sent, [], 'the client sent more than the transcript has');
    assert.is(this.#outcomes.length, 0, 'the transcript looks at every outcome');
    assert.is(this.#client?.state, 'closed', 'the transcript ends with `▶ close`');
    assert.ok(this.#channel.closed);
  }

  async #program(verb: string, args: readonly JsonValue[]): Promise<void> {
    if (verb === 'result' || verb === 'failure') {
      const outcome = this.#outcomes.shift();
      if (!outcome) throw new Error(`▶ ${verb}: no action is left`);
      const got = await outcome;
      const failed = isObject(got) && got.failed === true;
      const [expected] = args;
      if (failed !== (verb === 'failure')) throw new Error(`expected a ${verb}, got ${JSON.stringify(got)}`);
      const found = difference(expected, got, this.#values);
      if (found !== undefined) throw new Error(`${found}\n  got ${JSON.stringify(got)}`);
      return;
    }
    if (verb === 'cancel') return this.#abort.abort(new Error('not needed'));
    this.#outcomes.push(outcomeOf(this.#start(verb, args)));
    // The action begins: it sends what it can before the next line.
    await settled();
  }

  #start(verb: string, args: readonly JsonValue[]): Promise<unknown> {
    const [first = '', second] = args;
    const name = String(first);
    const object: JsonObject = isJson(second) ? second : {};
    const { signal } = this.#abort;
    if (verb === 'connect') return this.#connect(first === 'modern' ? first : 'auto');
    const client = this.#client;
    if (!client) throw new Error(`▶ ${verb}: not connected`);
    switch (verb) {
      case 'tools':
        return client.tools().then((tools) => tools.map((tool) => tool.name));
      case 'call':
        return client.call(name, object, { signal });
      case 'report': {
        const steps: JsonValue[] = [];
        return client
          .call(name, object, { onProgress: ({ progress }) => steps.push(progress), timeoutMs: 1_000 })
          .then((result) => ({ steps, content: result.content }));
      }
      case 'start':
        return client.start(name, object).then(({ id, status }) => ({ id, status: status ?? null }));
      case 'read':
        return client.read(name);
      case 'prompt':
        return client.prompt(
          name,
          Object.fromEntries(Object.entries(object).map(([key, value]) => [key, String(value)])),
        );
      case 'complete':
        return client.complete({ prompt: name }, { name: 'language', value: String(second) });
      case 'watch':
        this.#changes = client.changes({ tools: true, resources: [name] });
        return this.#changes.next().then(({ value }) => value ?? null);
      case 'unwatch':
        return (this.#changes?.return() ?? Promise.resolve()).then(() => null);
      case 'rootsChanged':
        client.rootsChanged();
        return Promise.resolve(null);
      case 'close':
        return client.close().then(() => null);
      default:
        throw new Error(`▶ ${verb}: no such action`);
    }
  }

  async #connect(eras: 'auto' | 'modern'): Promise<unknown> {
    this.#client = await connect(
      { channel: () => this.#channel, name: 'scripted' },
      {
        name: 'reader',
        version: '1.0.0',
        eras,
        clock: this.#clock,
        log: () => {},
        elicit: () => ({ size: 'small' }),
        elicitUrl: () => 'accept',
        sample: () => ({ role: 'assistant', model: 'tea-1', content: { type: 'text', text: 'oolong' } }),
        roots: () => [{ uri: 'file:///home/ada', name: 'home' }],
      },
    );
    const { name, revision, era } = this.#client.server;
    return { name, revision, era };
  }
}

function isJson(value: JsonValue | undefined): value is JsonObject {
  return isObject(value);
}

/** The outcome as JSON: the result, or the failure. */
async function outcomeOf(action: Promise<unknown>): Promise<JsonValue> {
  try {
    return readJson(JSON.stringify((await action) ?? null)) ?? null;
  } catch (error) {
    if (!(error instanceof ClientError)) throw error;
    const { reason, carriedOut } = error;
    return { failed: true, reason, carriedOut };
  }
}

for (const [folder, revisions] of Object.entries(FOLDERS))
  for (const [at, revision] of revisions.entries()) {
    const test = suite(folder === revision ? `client, ${revision}` : `client, ${revision} (${folder})`);
    for (const [index, file] of readdirSync(new URL(`${folder}/`, FOLDER))
      .sort()
      .entries()) {
      const { why, acts } = readClientTranscript(readFileSync(new URL(`${folder}/${file}`, FOLDER), 'utf8'));
      // Quick: of four revisions, two play each transcript, and each plays half of them.
      const isQuick = revisions.length < 3 || (at + index) % 2 === 0;
      (isQuick ? test : test.full)(`${file.replace(/\.txt$/, '')}: ${why}`, async () => {
        const play = new Play(revision);
        for (const act of acts) {
          const line = act.kind === 'step' ? act.step.line : act.line;
          try {
            await play.act(act);
          } catch (error) {
            const problem = error instanceof Error ? error.message : String(error);
            throw new Error(`${folder}/${file} line ${line}: ${problem}`, { cause: error });
          }
        }
        await play.end();
      });
    }
  }

const whole = suite('the transcripts of the client');

whole('every folder has its revisions, and no other folder is there', () => {
  assert.equal(readdirSync(FOLDER).sort(), Object.keys(FOLDERS).sort());
});
