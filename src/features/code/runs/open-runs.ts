/** Opens the runs of scripts of one server, with the sandboxes that run them. Loaded with the first script. */
import { within } from '../../../core/kernel/clock.ts';
import type { RequestView } from '../../../core/messages/request-view.ts';
import * as option from '../../../core/protocol/option-rows.ts';
import { requestOnBehalf } from '../../../core/requests/request-on-behalf.ts';
import type { Core } from '../../../core/server/feature.ts';
import type { CodeOptions } from '../code-options.ts';
import type { CallableFunctions } from '../functions/code-functions.ts';
import { Sandboxes } from '../sandbox/sandboxes.ts';
import { CodeRuns } from './code-runs.ts';
import { callingAuth, callingClient } from './run-caller.ts';
import type { StoredCaller } from './run-journal.ts';

/** Milliseconds in which the lists of mounts must be there for a run that continues without a request. */
const LISTS_MS = 60_000;
/** The id and the address of the request that asks for them. */
const LISTS = 'run/functions';

export interface OpenRuns {
  readonly runs: CodeRuns;
  /** The server stops: first the runs, then their threads. */
  stop(reason: string): void;
}

/** @param functionsOf the functions that the caller of a request may call, once its lists are there */
export function openRuns(
  core: Core,
  settings: CodeOptions,
  functionsOf: (request: RequestView) => CallableFunctions,
): OpenRuns {
  const { effects: _, waitMs: __, ...bounds } = settings;
  const { system } = core;
  const { codeCalls } = core.limits;
  const engine = new Sandboxes({ system, maxCalls: codeCalls + 1, ...option.withoutUndefined(bounds) });
  const runs = new CodeRuns({
    ...{ core, engine, settings, name: core.info.name },
    functionsOf: async (caller) => functionsOf(await listed(core, caller)),
  });
  core.bus.on('principal.forgotten', ({ principal }) => runs.forget(principal));
  return {
    runs,
    stop(reason) {
      runs.stop(reason);
      engine.end();
    },
  };
}

/** Lists the tools as a caller whose request has ended: waits for the lists of mounts, and asks the rules what it sees. */
async function listed({ stages, system }: Core, caller: StoredCaller): Promise<RequestView> {
  const given = { id: LISTS, client: callingClient(caller, undefined, false), auth: callingAuth(caller, undefined) };
  const operation = { method: 'tools/list', cursor: undefined } as const;
  const { request, answered } = requestOnBehalf(given, operation, 'tools', LISTS);
  stages.route({ type: 'request', request });
  const late = (): Error => new Error(`the lists of its functions took longer than ${LISTS_MS} ms`);
  await within(answered, system.clock, LISTS_MS, late);
  return request;
}
