/** A server whose tool `run_code` runs scripts by the engine for tests, and its clients. */
import type { Context } from '../../../src/core/execution/context.ts';
import { isObject, type JsonObject } from '../../../src/core/protocol/json.ts';
import { META } from '../../../src/core/protocol/meta.ts';
import type { Core, Feature } from '../../../src/core/server/feature.ts';
import type { CodeOptions } from '../../../src/features/code/code-options.ts';
import type { CallableFunctions } from '../../../src/features/code/functions/code-functions.ts';
import { CodeRuns } from '../../../src/features/code/runs/code-runs.ts';
import { hasEffect } from '../../../src/features/code/runs/effects.ts';
import type { ScriptEngine } from '../../../src/features/code/runs/run-messages.ts';
import type { AuditRecord, Server, ServerOptions } from '../../../src/index.ts';
import { isObjectInTest } from '../../../src/testing/test-json.ts';
import { SimulatedClock, settled, type TestClient } from '../../../src/testing/testing.ts';
import { loggedServer } from '../../harness/memory.ts';
import { textOf } from '../../harness/results.ts';
import { FakeEngine } from './fake-engine.ts';

export const ASKABLE: JsonObject = { elicitation: { form: {} } };

/** The functions of every caller: the tools of the server, as the group `t`. */
function functionsOf(core: Core): CallableFunctions {
  const { tools } = core.elements.catalogues;
  return {
    groups: ['t'],
    find(name) {
      const [group, key = ''] = name.split('.');
      const found = group === 't' && key !== 'run_code' ? tools.get(key) : undefined;
      return found && { key, definition: found.definition, effects: hasEffect(found) };
    },
    near: () => ['t.read'],
    declared: (name) => `${name}(args: …)`,
    learn: () => {},
  };
}

/** A feature that offers `run_code`. */
export function codeFeature(
  engine: ScriptEngine,
  settings?: CodeOptions,
  lists: { fails: Error | undefined } = { fails: undefined },
): Feature<CodeRuns> {
  return {
    name: 'code for tests',
    open(core) {
      const functions = functionsOf(core);
      const runs = new CodeRuns({
        core,
        engine,
        settings,
        name: 'tested',
        functionsOf: () => (lists.fails ? Promise.reject(lists.fails) : Promise.resolve(functions)),
      });
      const tool = {
        input: { type: 'object', properties: { code: { type: 'string' }, resume: { type: 'string' } } },
        handler: (args: unknown, ctx: Context) => {
          const { code, resume } = isObject(args) ? args : {};
          return runs.run(typeof resume === 'string' ? { resume } : { code: String(code) }, ctx, functions);
        },
      } as const;
      core.elements.tools().register({ ...tool, name: 'run_code', task: 'allowed' });
      core.elements.tools().register({ ...tool, name: 'run_code_task', task: 'required' });
      return {
        service: runs,
        holds: runs,
        started: () => runs.started(),
        finish: async (reason) => runs.stop(reason),
      };
    },
  };
}

export interface Workshop {
  readonly server: Server;
  readonly clock: SimulatedClock;
  readonly engine: FakeEngine;
  readonly logged: readonly string[];
  readonly audit: readonly AuditRecord[];
  /** The calls of `write` that ran. */
  readonly written: unknown[];
  /** The error with which the functions of a run without a request cannot be listed. */
  readonly lists: { fails: Error | undefined };
  /** Its runs, of which a test lets go as a node of a cluster does. */
  runs(): CodeRuns;
}

/** A server with the tools `read`, `write`, `who` and `fail`. */
export function workshop(
  options: Partial<ServerOptions> = {},
  settings: CodeOptions = { effects: 'allow' },
  clock = new SimulatedClock(),
): Workshop {
  const engine = new FakeEngine();
  const lists: Workshop['lists'] = { fails: undefined };
  const audit: AuditRecord[] = [];
  const written: unknown[] = [];
  const feature = codeFeature(engine, settings, lists);
  let runs: CodeRuns | undefined;
  const open: typeof feature.open = (core) => {
    const opened = feature.open(core);
    runs = opened.service;
    return opened;
  };
  const { server, logged } = loggedServer({
    ...{ name: 'workshop', clock, features: [{ ...feature, open }] },
    keys: ['a secret that is long enough to be one of this server'],
    audit: { to: (record) => void audit.push(record), events: ['call', 'read', 'denied', 'asked', 'approval'] },
    ...options,
  });
  const any = { type: 'object', properties: { n: { type: 'number' } } } as const;
  server.tool('read', { input: any, annotations: { readOnlyHint: true } }, ({ n = 0 }: { n?: number }) => ({
    n,
    double: n * 2,
  }));
  server.tool('write', { input: any }, (args: { n?: number }) => {
    written.push(args.n);
    return `wrote ${args.n}`;
  });
  server.tool('fail', { annotations: { readOnlyHint: true } }, () => {
    throw new TypeError('broken');
  });
  server.tool('who', { annotations: { readOnlyHint: true } }, async (_: unknown, ctx: Context) => {
    const answer = await ctx.elicit({
      message: 'Who?',
      schema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
    });
    return answer.status === 'accepted'
      ? { name: String(isObjectInTest(answer.content) ? answer.content.name : '') }
      : 'nobody';
  });
  return {
    ...{ server, clock, engine, logged, audit, written, lists },
    runs() {
      if (!runs) throw new Error('expected a server that has started');
      return runs;
    },
  };
}

/** Calls `run_code` by a modern client. */
export function runModern(
  client: TestClient,
  args: JsonObject,
  more: JsonObject = {},
  capabilities: JsonObject = ASKABLE,
): Promise<JsonObject> {
  return client.modern(
    'tools/call',
    { name: 'run_code', arguments: args, ...more },
    { [META.clientCapabilities]: capabilities },
  );
}

/** The questions of a result, and its state. */
export function asked(result: JsonObject): {
  readonly keys: readonly string[];
  readonly messages: readonly string[];
  readonly state: string;
} {
  const { inputRequests, requestState } = result;
  if (!isObjectInTest(inputRequests) || typeof requestState !== 'string')
    throw new Error(`expected questions, got ${JSON.stringify(result)}`);
  const messages = Object.values(inputRequests).map((question) =>
    isObjectInTest(question) && isObjectInTest(question.params) ? String(question.params.message) : '',
  );
  return { keys: Object.keys(inputRequests), messages, state: requestState };
}

/** What a script has returned. */
export function resultIn(result: JsonObject): unknown {
  const [text = ''] = textOf(result).split('\n');
  if (result.isError === true) throw new Error(`expected a result, got ${text}`);
  const value: unknown = JSON.parse(text);
  return isObject(value) ? value.result : undefined;
}

/** The id of a run that is paused. */
export function pausedIn(result: JsonObject): string {
  const [, id] = /^paused: run ([\w-]+),/.exec(textOf(result)) ?? [];
  if (id === undefined) throw new Error(`expected a paused run, got ${JSON.stringify(result)}`);
  return id;
}

/** Advances a clock, and lets all that is due run. */
export async function pass(clock: SimulatedClock, ms: number): Promise<void> {
  await clock.advance(ms);
  for (let turn = 0; turn < 5; turn += 1) await settled();
}
