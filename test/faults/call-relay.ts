/** Broken builds of the relay of calls between a client and an upstream. */
import type { BrokenBuild } from './broken-build.ts';

const RESTARTS = 'test/gateway/mounts/restarts.test.ts';

export const CALL_RELAY: readonly BrokenBuild[] = [
  {
    id: 'U-12',
    test: RESTARTS,
    in: 'RelayedCall.#round',
    find: 'if (this.#earlier && !this.#call.repeatable) await this.#sendOnce(this.#earlier);',
    replace: '',
    why: 'a call that a legacy upstream was carrying out is made again after a restart of the gateway',
  },
  {
    id: 'U-12',
    test: RESTARTS,
    in: 'ClientConnection.#transmit',
    find: 'if (request.resumesAfter !== undefined) return channel.resume?.(message, request.resumesAfter);',
    replace: '',
    why: 'a call in the session of a killed gateway is sent again, in place of the rest of its stream',
    built: true,
  },
  {
    id: 'U-12',
    test: RESTARTS,
    in: 'RelayedCall.#leaveOnEnd',
    find: 'if (this.#recordedPosition && continuesElsewhere(this.#ctx)) client.leave();',
    replace: 'if (!this.#recordedPosition && continuesElsewhere(this.#ctx)) client.leave();',
    why: 'a gateway that stops cancels the call that its next process would continue',
    built: true,
  },
  {
    id: 'U-13',
    test: RESTARTS,
    in: 'RelayedCall.#follow',
    find: 'ctx.signal.aborted && !continuesElsewhere(ctx)',
    replace: 'ctx.signal.aborted',
    why: 'a gateway that stops cancels the task that the next process should follow',
  },
  {
    id: 'U-16',
    test: 'test/gateway/mounts/principals.test.ts',
    in: 'OwnedRoots.get',
    find: 'const named = this.#named.get(ownerKey);',
    replace: 'const [named] = [...this.#named.values(), this.#named.get(ownerKey)];',
    why: 'the roots of one client are given to the upstream in the call of another',
  },
  {
    id: 'S-95',
    test: 'test/gateway/mounts/owners.test.ts',
    in: 'OwnerViews.over',
    find: 'hiddenFrom: (request) => !has.has(callOwnerOf(request).key)',
    replace: 'hiddenFrom: () => false',
    why: 'a tool that the login of one client adds is offered to all',
  },
  {
    id: 'S-95',
    test: 'test/client/relay.test.ts',
    in: 'AskableCalls.isCertain',
    find: 'return others === 0 &&',
    replace: 'return others >= 0 &&',
    why: 'the question of a process that several clients share goes to the client of the newest call',
  },
  {
    id: 'U-20',
    test: RESTARTS,
    in: 'RelayedCall.run',
    find: "if (begins && this.#resumable) await this.#ctx.step('round 1', () => result);",
    replace: '',
    why: 'a question is put before its round is stored',
  },
];
