/** The registry and the executor actor when they fail themselves, which nothing that an author supplies can make them: they are driven by hand. */
import * as assert from 'uvu/assert';
import { spawnExecutor } from '../../../src/core/execution/executor.actor.ts';
import { HandlerErrors } from '../../../src/core/execution/handler-errors.ts';
import { createActorSystem } from '../../../src/core/kernel/actor-system.ts';
import type { RequestsMail } from '../../../src/core/messages/request-messages.ts';
import type { RequestView } from '../../../src/core/messages/request-view.ts';
import { DIALECTS } from '../../../src/core/protocol/dialects/index.ts';
import { Catalogue } from '../../../src/core/registry/catalogue.ts';
import { spawnRegistry } from '../../../src/core/registry/registry.actor.ts';
import { IncomingRequest } from '../../../src/core/requests/active-request.ts';
import { ErrorCode } from '../../../src/index.ts';
import { SimulatedClock } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';

const test = suite('actors that serve, failing');

/** A request on its way, and what its in-flight table hears of it. */
function underWay(id: number): { request: RequestView; heard: RequestsMail[] } {
  const heard: RequestsMail[] = [];
  const dialect = DIALECTS['2025-06-18'];
  const self = { dialect, info: undefined, capabilities: {}, logLevel: undefined, principal: 'x', session: undefined };
  const mailbox = { address: 'requests/x', send: (mail: RequestsMail) => void heard.push(mail) };
  const request = new IncomingRequest(
    id,
    { method: 'tools/list', cursor: undefined },
    'tools',
    self,
    undefined,
    undefined,
    undefined,
    mailbox,
    0,
  );
  return { request, heard };
}

const codes = (heard: readonly RequestsMail[]): unknown[] =>
  heard.map((mail) => (mail.type === 'answer' && !mail.outcome.ok ? mail.outcome.error.code : mail));

test('a registry that fails answers with -32603 and serves the next; quarantined it still answers, registrations too', () => {
  const clock = new SimulatedClock();
  const incidents: string[] = [];
  const served: unknown[] = [];
  let broken = true;
  const { mailbox } = spawnRegistry({
    system: { ...createActorSystem({ clock, log: () => {} }), incident: (where) => String(incidents.push(where)) },
    address: 'registry/tools',
    catalogue: new Catalogue('tool'),
    serve({ id }) {
      if (broken) throw new Error('secret');
      served.push(id);
    },
    changed() {},
  });
  const send = (id: number): unknown[] => {
    const { request, heard } = underWay(id);
    mailbox.send({ type: 'request', request });
    return codes(heard);
  };
  for (let id = 0; id < 3; id += 1) assert.equal(send(id), [ErrorCode.InternalError]);
  broken = false;
  assert.equal(send(3), []);
  assert.equal(served, [3]);
  broken = true;
  assert.equal(send(4), [ErrorCode.InternalError]);
  broken = false;
  assert.equal(send(5), [ErrorCode.InternalError]);
  let answer: unknown;
  mailbox.send({
    type: 'clear',
    from: {
      address: 'test',
      send({ registered }) {
        answer = registered;
      },
    },
  });
  assert.equal(answer, { ok: false, why: 'the registry failed (incident 6)' });
  assert.is(incidents.length, 6);
});

test('an executor actor that fails answers with -32603 and runs the next', () => {
  const clock = new SimulatedClock();
  const incidents: string[] = [];
  const incident = (where: string): string => {
    // It fails while it tells of the failure: that is not the handler's any more.
    if (where !== 'executor/tools') throw new Error('secret');
    return String(incidents.push(where));
  };
  let broken = true;
  const system = { ...createActorSystem({ clock, log: () => {} }), incident };
  const { mailbox } = spawnExecutor<{ label: string }, string, Record<string, never>>({
    system,
    address: 'executor/tools',
    errors: new HandlerErrors(system, undefined),
    run() {
      if (broken) throw new Error('secret');
      return {};
    },
    stages: { mayRun: () => true },
    wrap: () => ({ kind: 'empty' }),
  });
  mailbox.send({ type: 'attach', ref: 1, implementation: { label: 'tool "x"' } });
  const first = underWay(1);
  mailbox.send({ type: 'execute', request: first.request, ref: 1, target: 'x' });
  assert.equal(codes(first.heard), [ErrorCode.InternalError]);
  broken = false;
  const second = underWay(2);
  mailbox.send({ type: 'execute', request: second.request, ref: 1, target: 'x' });
  assert.equal(
    second.heard.map((mail) => mail.type === 'answer' && mail.outcome.ok),
    [true],
  );
  // An element that was removed meanwhile is no crash, however often it is asked for.
  for (let id = 3; id < 9; id += 1) {
    const gone = underWay(id);
    mailbox.send({ type: 'execute', request: gone.request, ref: 99, target: 'x' });
    assert.equal(codes(gone.heard), [ErrorCode.InvalidParams]);
  }
  assert.equal(incidents, ['executor/tools']);
});
