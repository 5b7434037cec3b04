/** A thread of the pool: loads the module of a handler, and runs one call after another. */
import { parentPort } from 'node:worker_threads';
import type { Context } from '../../core/execution/context.ts';
import { describe } from '../../core/protocol/json.ts';
import type { ThreadSource } from '../../core/registry/define.ts';
import { loadModule } from '../discovery/load-module.ts';
import { readExports } from '../discovery/module-exports.ts';
import type { PoolMail, ThreadMail, TransferredResult } from './pool-protocol.ts';
import { ThreadContext } from './thread-context.ts';
import { encodeError, encodeResult } from './transfer.ts';

type Handler = (args: unknown, ctx: Context) => unknown;

const loaded = new Map<string, Promise<Handler>>();
let current: ThreadContext | undefined;

parentPort?.on('message', (mail: PoolMail) => {
  switch (mail.type) {
    case 'run':
      return void run(mail);
    case 'abort':
      return current?.abort(mail.reason);
    case 'run step':
      return void current?.runStep(mail.step);
    case 'step over':
      return current?.stepOver(mail.step, mail.given);
  }
});

async function run({ source, args, facts }: Extract<PoolMail, { type: 'run' }>): Promise<void> {
  const context = new ThreadContext(facts, (mail) => {
    // Code that an earlier call left behind does not belong to the current call.
    if (current === context) say(mail);
  });
  current = context;
  let given: TransferredResult;
  try {
    const handler = await handlerOf(source);
    context.signal.throwIfAborted();
    say({ type: 'began' });
    given = encodeResult(await handler(args, context));
  } catch (error) {
    given = encodeError(error);
  }
  current = undefined;
  say({ type: 'done', given });
}

/** Sends a message. @throws {TypeError} never for a result that cannot be cloned: it becomes the call's error */
function say(mail: ThreadMail): void {
  try {
    parentPort?.postMessage(mail);
  } catch (error) {
    if (mail.type === 'done' || mail.type === 'step ran')
      parentPort?.postMessage({ ...mail, given: encodeError(error) });
    else throw error;
  }
}

function handlerOf(source: ThreadSource): Promise<Handler> {
  const key = `${source.module}\n${source.tool ?? ''}`;
  const found = loaded.get(key) ?? load(source);
  loaded.set(key, found);
  return found;
}

async function load({ module, tool }: ThreadSource): Promise<Handler> {
  const exports = await loadModule(module, 0);
  if (tool === undefined) {
    if (isHandler(exports.default)) return exports.default;
    throw new TypeError(
      `${module}: expected its default export to be the handler of a tool, a function, got ${describe(exports.default)}`,
    );
  }
  const { tools } = await readExports(exports, module);
  const found: unknown = tools.find(({ name }) => name === tool);
  const handler = isWithHandler(found) ? found.handler : undefined;
  if (!isHandler(handler))
    throw new TypeError(`${module}: expected the module to export the tool "${tool}" in a thread, too`);
  return handler;
}

function isHandler(value: unknown): value is Handler {
  return typeof value === 'function';
}

function isWithHandler(value: unknown): value is { readonly handler: unknown } {
  return typeof value === 'object' && value !== null && 'handler' in value;
}
