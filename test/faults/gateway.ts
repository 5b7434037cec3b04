/** Broken builds of the gateway: the pins of mounts, and changes of its configuration. */
import type { BrokenBuild } from './broken-build.ts';

export const GATEWAY_FAULTS: readonly BrokenBuild[] = [
  {
    id: 'S-87',
    test: 'test/gateway/client-members.test.ts',
    in: 'configured-gateway.ts: targetOf',
    find: "return 'socket' in target ? target : { ...target, name: shown };",
    replace: 'return shown === undefined ? target : { ...target };',
    why: 'a token in the arguments of a server stands in the log',
    built: true,
  },
  {
    id: 'U-17',
    test: 'test/gateway/reload.test.ts',
    in: 'ReplaceableUpstream.replace',
    find: 'this.#clock.after(SETTLE_MS, () => { void before.close(DRAIN_MS)',
    replace: 'this.#clock.after(0, () => { void before.close(1)',
    why: 'an upstream that was replaced is closed with its calls in flight',
    built: true,
  },
  {
    id: 'U-18',
    test: 'test/gateway/mounts/mount-pins.test.ts',
    in: 'PinGuard.judge',
    find: 'offered: holds ? without(catalogue, approvedOf(now, held)) : catalogue, problems };',
    replace: 'offered: catalogue, problems };',
    why: 'a changed tool is offered although it is held',
    built: true,
  },
];
