/** A view and the official bridge as its host, over a pair of functions: no browser. */
import {
  AppBridge,
  type McpUiHostCapabilities,
  type McpUiHostContext,
} from '@modelcontextprotocol/ext-apps/app-bridge';
import { SimulatedClock } from 'troupe/testing';
import { connect } from '../../../apps/src/view/connection.ts';
import type { HostContext } from '../../../apps/src/view/host-context.ts';
import type { Channel } from '../../../apps/src/view/host-link.ts';
import type { Surroundings } from '../../../apps/src/view/surroundings.ts';
import { type ToolTypes, View, type ViewOptions } from '../../../apps/src/view/view.ts';

/** A window that a test controls. */
export class FakeWindow implements Surroundings {
  readonly clock: SimulatedClock;
  readonly looks: HostContext[] = [];
  report: ((width: number, height: number) => void) | undefined;
  #seen = true;
  readonly #listeners = new Set<() => void>();

  constructor(clock: SimulatedClock) {
    this.clock = clock;
  }

  now(): number {
    return this.clock.now();
  }

  readonly after = (ms: number, callback: () => void): (() => void) => {
    const timer = this.clock.after(ms, callback);
    return () => timer.cancel();
  };

  isSeen(): boolean {
    return this.#seen;
  }

  onSeen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  applyLooks(context: HostContext): void {
    this.looks.push(context);
  }

  observeSize(report: (width: number, height: number) => void): () => void {
    this.report = report;
    return () => {
      this.report = undefined;
    };
  }

  hide(): void {
    this.#seen = false;
  }

  show(): void {
    this.#seen = true;
    for (const listener of [...this.#listeners]) listener();
  }
}

type Message = Readonly<Record<string, unknown>>;

/** Both ends of a wire that copies each message, as `postMessage` does, and delivers it in a later microtask. */
export function wire() {
  const sent: Message[] = [];
  let toView: ((message: unknown) => void) | undefined;
  let toHost: ((message: never) => void) | undefined;
  const channel: Channel = {
    send(message) {
      const copy = structuredClone(message);
      sent.push(copy as Message);
      queueMicrotask(() => toHost?.(copy as never));
    },
    receive(listener) {
      toView = listener;
      return () => {
        toView = undefined;
      };
    },
  };
  return {
    channel,
    /** Messages of the view, the oldest first. */
    sent,
    /** Sends the view a message that no bridge would send. */
    inject: (message: unknown) => toView?.(message),
    transport: {
      start: async () => {},
      close: async () => {},
      send: async (message: object) => {
        const copy = structuredClone(message);
        queueMicrotask(() => toView?.(copy));
      },
      set onmessage(receive: ((message: never) => void) | undefined) {
        toHost = receive;
      },
      get onmessage() {
        return toHost;
      },
    },
  };
}

export interface Bridged<Tools extends ToolTypes = ToolTypes> {
  readonly view: View<Tools>;
  readonly bridge: AppBridge;
  readonly window: FakeWindow;
  readonly sent: readonly Message[];
  readonly inject: (message: unknown) => void;
}

/** A capable host. */
export const CAPABLE: McpUiHostCapabilities = { openLinks: {}, serverTools: {}, serverResources: {}, logging: {} };

export async function bridged<Tools extends ToolTypes = ToolTypes>({
  capabilities = CAPABLE,
  context = {},
  prepare = () => {},
  options = {},
}: {
  capabilities?: McpUiHostCapabilities;
  context?: McpUiHostContext;
  prepare?: (bridge: AppBridge) => void;
  options?: ViewOptions;
} = {}): Promise<Bridged<Tools>> {
  const window = new FakeWindow(new SimulatedClock());
  const { channel, transport, sent, inject } = wire();
  const bridge = new AppBridge(null, { name: 'chat', version: '7' }, capabilities, { hostContext: context });
  prepare(bridge);
  await bridge.connect(transport as Parameters<AppBridge['connect']>[0]);
  const page = { name: 'view', version: '1', displayModes: [], ...options };
  const view = new View<Tools>(await connect(channel, window, page));
  return { view, bridge, window, sent, inject };
}
