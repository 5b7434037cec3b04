/** Broken builds of the gateway: the pins of mounts, and changes of its configuration. */
import type { BrokenBuild } from './broken-build.ts';

export const GATEWAY_FAULTS: readonly BrokenBuild[] = [
  {
    id: 'S-87',
    test: 'test/gateway/client-members.test.ts',
    file: 'src/gateway/configured-gateway.ts',
    find: "return 'socket' in target ? target : { ...target, name: shown };",
    replace: 'return shown === undefined ? target : { ...target };',
    why: 'a token in the arguments of a server stands in the log',
    built: true,
  },
  {
    id: 'U-17',
    test: 'test/gateway/reload.test.ts',
    file: 'src/mounts/replaceable-upstream.ts',
    find: 'this.#clock.after(SETTLE_MS, () => {\n      void before.close(DRAIN_MS)',
    replace: 'this.#clock.after(0, () => {\n      void before.close(1)',
    why: 'an upstream that was replaced is closed with its calls in flight',
    built: true,
  },
  {
    id: 'U-18',
    test: 'test/mounts/mount-pins.test.ts',
    file: 'src/mounts/pin-guard.ts',
    find: 'offered: holds ? without(catalogue, approvedOf(now, held)) : catalogue, problems };',
    replace: 'offered: catalogue, problems };',
    why: 'a changed tool is offered although it is held',
    built: true,
  },
];
