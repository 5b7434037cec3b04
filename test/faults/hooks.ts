/** Broken builds of webhooks: deliveries that are lost or handled twice, and requests that are taken for genuine ones. */
import type { BrokenBuild } from './broken-build.ts';

export const HOOKS: readonly BrokenBuild[] = [
  {
    id: 'R-64',
    test: 'test/features/hooks/durable-hooks.test.ts',
    in: 'HookTable.#resume',
    find: 'attempt: record.attempt + 1',
    replace: 'attempt: record.attempt',
    why: 'a delivery that ends each process is attempted for ever',
  },
  {
    id: 'R-65',
    test: 'test/features/hooks/webhooks.test.ts',
    in: 'HookTable.#due',
    find: 'if (left > 0) {',
    replace: 'if (left < 0) {',
    why: 'a handler that fails is attempted again at once',
  },
  {
    id: 'R-66',
    test: 'test/features/hooks/durable-hooks.test.ts',
    in: 'HookTable.#claim',
    find: 'entry.claimed = earlier === undefined || earlier === ref;',
    replace: 'entry.claimed = true;',
    why: 'equal deliveries at several nodes are handled at each',
  },
  {
    id: 'R-93',
    test: 'test/features/hooks/emissions.test.ts',
    in: 'HookTable.#handle',
    find: 'this.#core.elements.emit(name, data, { id, at: when })',
    replace: 'this.#core.elements.emit(name, data, { id: id + attempt, at: when })',
    why: 'a delivery that is attempted twice is two events',
  },
  {
    id: 'S-140',
    test: 'test/features/hooks/webhooks.test.ts',
    in: 'RegisteredHooks.#answer',
    find: "return ['rejected', REJECTED];",
    replace: "return ['rejected', { ...REJECTED, text: 'the signature does not match' }];",
    why: 'a stranger learns why a delivery is rejected',
  },
  {
    id: 'S-141',
    test: 'test/features/hooks/hook-verifiers.test.ts',
    in: 'hook-verifiers.ts: isRecent',
    find: 'Math.abs(now - Number(seconds) * 1_000)',
    replace: '(now - Number(seconds) * 1_000)',
    why: 'a signature with a time in the future is genuine for ever',
  },
  {
    id: 'S-142',
    test: 'test/features/hooks/webhooks.test.ts',
    in: 'RegisteredHooks.#answer',
    find: 'once ?? `body',
    replace: 'once ?? id ?? `body',
    why: 'a recorded request runs again under another id',
  },
  {
    id: 'S-143',
    test: 'test/features/hooks/webhooks.test.ts',
    in: 'Endpoint.#webhook',
    find: 'webhook.tooOften(',
    replace: '((_: string) => undefined)(',
    why: 'a stranger makes the server hash bodies as often as it likes',
  },
];
