/** A host of views: it answers a view as a chat client of a preset does, and keeps all messages (MCP Apps 2026-01-26). */
import { signal } from '@preact/signals';
import type { CallerOptions, Control, ViewMethod } from '../../../../src/inspector/calls/call-messages.ts';
import type { Plain } from '../../../../src/inspector/frames.ts';
import { isList, isRecord, textOfValue } from '../../../../src/inspector/model/plain-values.ts';
import { ask, Refused } from '../../store/api.ts';
import type { Preset } from './presets.ts';

type Members = { readonly [name: string]: Plain };
/** An answer of the server, as the page received it. */
type PassedOn = { readonly result: Members } | { readonly error: Members };

/** One message between host and view. */
export interface HostMessage {
  readonly id: number;
  readonly at: number;
  readonly from: 'host' | 'view';
  /** The method; that of the request for an answer. */
  readonly method: string;
  readonly kind: 'request' | 'answer' | 'refusal' | 'notification';
  readonly body: Plain;
}

interface Outcome {
  readonly error?: Members;
  readonly result?: Members;
}

/** Messages that are kept, the newest. */
const MAX_MESSAGES = 300;
const PROTOCOL_VERSION = '2026-01-26';
const METHOD_NOT_FOUND = -32_601;

/** Sends a request to the server as a host that shows views. @throws {Refused} if the inspector does not pass it on */
export async function passOn(method: ViewMethod, params: Members, caller: CallerOptions): Promise<PassedOn> {
  // The values come from JSON.
  const body = { action: 'view', method, params, caller } as Control;
  const response = await ask('api/control', { body });
  return response.json();
}

export interface HostOptions {
  readonly preset: Preset;
  readonly caller: CallerOptions;
  readonly context: Members;
  /** The names in the list of tools. */
  readonly listed: ReadonlySet<string>;
}

export class SimulatedHost {
  readonly messages = signal<readonly HostMessage[]>([]);
  /** The context of the model as the view sent it last. */
  readonly modelContext = signal<Plain | undefined>(undefined);
  readonly height = signal(0);
  readonly mode = signal('inline');
  options: HostOptions;
  readonly #frame: HTMLIFrameElement;
  readonly #origin: string;
  readonly #html: string;
  /** Sent once the view is initialized. */
  #opening: readonly (readonly [method: string, params: Members])[] = [];
  #isReady = false;
  #last = 0;

  /** @param origin of the frame */
  constructor(frame: HTMLIFrameElement, origin: string, html: string, options: HostOptions) {
    this.#frame = frame;
    this.#origin = origin;
    this.#html = html;
    this.options = options;
    addEventListener('message', this.#receive);
  }

  /** Sends the arguments or the result of the call, as soon as the view can take them. */
  open(method: string, params: Members): void {
    if (this.#isReady) this.notify(method, params);
    else this.#opening = [...this.#opening, [method, params]];
  }

  notify(method: string, params: Members): void {
    this.#send({ method, params }, method, 'notification', params);
  }

  /** Gives the view other surroundings. */
  change(context: Members): void {
    if (this.#isReady) this.notify('ui/notifications/host-context-changed', context);
  }

  /** Asks the view to end. It is not waited for. */
  close(): void {
    if (this.#isReady) {
      this.#last += 1;
      const id = `teardown ${this.#last}`;
      this.#send({ id, method: 'ui/resource-teardown', params: {} }, 'ui/resource-teardown', 'request', {});
    }
    removeEventListener('message', this.#receive);
  }

  readonly #receive = ({ source, origin, data }: MessageEvent): void => {
    if (source !== this.#frame.contentWindow || origin !== this.#origin || !isRecord(data)) return;
    const { id, method, result, error } = data;
    const params = isRecord(data.params) ? data.params : {};
    if (typeof method !== 'string') {
      this.#keep('view', `answer to ${textOfValue(id) ?? id}`, error ? 'refusal' : 'answer', error ?? result ?? null);
      return;
    }
    if (method === 'ui/notifications/sandbox-proxy-ready') {
      // No message of the protocol: it goes to the proxy.
      this.#post({ method: 'ui/notifications/sandbox-resource-ready', params: { html: this.#html } });
      return;
    }
    this.#keep('view', method, id === undefined ? 'notification' : 'request', params);
    if (id === undefined) this.#notified(method, params);
    else void this.#answer(id, method, params);
  };

  #notified(method: string, params: Members): void {
    if (method === 'ui/notifications/size-changed' && typeof params.height === 'number')
      this.height.value = params.height;
    if (method !== 'ui/notifications/initialized') return;
    this.#isReady = true;
    for (const [sent, given] of this.#opening) this.notify(sent, given);
  }

  async #answer(id: Plain, method: string, params: Members): Promise<void> {
    const { error, result } = await this.#outcome(method, params);
    if (error) this.#send({ id, error }, method, 'refusal', error);
    else this.#send({ id, result: result ?? {} }, method, 'answer', result ?? {});
  }

  async #outcome(method: string, params: Members): Promise<Outcome> {
    const { preset, caller, context, listed } = this.options;
    const refusal = { error: { code: METHOD_NOT_FOUND, message: 'Method not found' } };
    if (preset.refuses.includes(method)) return refusal;
    switch (method) {
      case 'ping':
        return {};
      case 'ui/initialize': {
        const capabilities = Object.fromEntries(preset.declares.map((name) => [name, {}]));
        const hostInfo = { name: `inspector (${preset.name})`, version: '1' };
        return {
          result: { protocolVersion: PROTOCOL_VERSION, hostInfo, hostCapabilities: capabilities, hostContext: context },
        };
      }
      case 'ui/update-model-context':
        this.modelContext.value = params;
        return {};
      case 'ui/message':
        return {};
      case 'ui/open-link':
        return { result: { isError: !/^https?:/.test(String(params.url)) } };
      case 'ui/request-display-mode': {
        const mode = preset.modes.find((each) => each === params.mode) ?? 'inline';
        this.mode.value = mode;
        return { result: { mode } };
      }
      case 'tools/call':
        if (preset.listedOnly && !listed.has(String(params.name)))
          return { error: { code: -32_602, message: `tools/list has no ${String(params.name)}` } };
        return this.#passOn(method, params, caller);
      case 'resources/read':
      case 'resources/list':
        return this.#passOn(method, params, caller);
      default:
        return refusal;
    }
  }

  async #passOn(method: ViewMethod, params: Members, caller: CallerOptions): Promise<Outcome> {
    try {
      return await passOn(method, params, caller);
    } catch (error) {
      return { error: { code: -32_603, message: error instanceof Refused ? error.message : 'no connection' } };
    }
  }

  #send(message: Members, method: string, kind: HostMessage['kind'], body: Plain): void {
    this.#keep('host', method, kind, body);
    this.#post(message);
  }

  #post(message: Members): void {
    this.#frame.contentWindow?.postMessage({ jsonrpc: '2.0', ...message }, this.#origin);
  }

  #keep(from: HostMessage['from'], method: string, kind: HostMessage['kind'], body: Plain): void {
    this.#last += 1;
    const message = { id: this.#last, at: Date.now(), from, method, kind, body };
    this.messages.value = [...this.messages.value.slice(1 - MAX_MESSAGES), message];
  }
}

/** The texts of a result: all that a host without views shows. */
export function textsOf(result: Plain): readonly string[] {
  const content = isRecord(result) && isList(result.content) ? result.content : [];
  return content.filter(isRecord).map((block) => textOfValue(block.text) ?? `[${textOfValue(block.type) ?? 'block'}]`);
}
