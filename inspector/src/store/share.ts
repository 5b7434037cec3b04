/**
 * One stream for all tabs of one server: a browser opens at most six connections to it. One tab leads and passes frames
 * to the others.
 */
import type { Frame } from '../../../src/inspector/frames.ts';
import type { StreamStatus } from './stream.ts';

type TabMessage =
  | { readonly kind: 'frames'; readonly frames: readonly Frame[] }
  | { readonly kind: 'status'; readonly status: StreamStatus }
  /** Another tab leads from now on. Tabs that wait may ask it. */
  | { readonly kind: 'lead' }
  /** A new tab asks for the frames so far. */
  | { readonly kind: 'join'; readonly tab: string }
  | { readonly kind: 'all'; readonly tab: string; readonly frames: readonly Frame[]; readonly status: StreamStatus }
  | { readonly kind: 'focus'; readonly tab: string; readonly actors: readonly string[] }
  | { readonly kind: 'left'; readonly tab: string };

export interface SharedOptions {
  /** Tabs with the same name share a stream. */
  readonly name: string;
  readonly tab: string;
  /** This tab leads and opens the stream. @returns a function that ends it */
  lead(): () => void;
  /** The frames so far. */
  all(): readonly Frame[];
  /** Frames from the leading tab. */
  frames(frames: readonly Frame[]): void;
  status(status: StreamStatus): void;
  /** The focus of all tabs together. Called in the leading tab only. */
  focus(actors: readonly string[]): void;
}

export interface Shared {
  readonly leads: boolean;
  /** Passes frames from the leading tab to the others. */
  publish(frames: readonly Frame[]): void;
  publishStatus(status: StreamStatus): void;
  focusOn(actors: readonly string[]): void;
  close(): void;
}

export function share(options: SharedOptions): Shared {
  const { tab } = options;
  const channel = new BroadcastChannel(options.name);
  const wanted = new Map<string, readonly string[]>();
  let leads = false;
  let followed = false;
  let status: StreamStatus = { state: 'connecting' };
  let mine: readonly string[] = [];
  const post = (message: TabMessage): void => channel.postMessage(message);
  // Selected actors come first: the server limits the focus.
  const focus = (): void => {
    const all = [mine, ...wanted.values()];
    options.focus([...new Set([...all.flatMap(([first]) => first ?? []), ...all.flat()])]);
  };

  channel.onmessage = ({ data }: MessageEvent<TabMessage>) => {
    switch (data.kind) {
      case 'lead':
        return post({ kind: 'join', tab });
      case 'join':
        if (leads) post({ kind: 'all', tab: data.tab, frames: options.all(), status });
        return;
      case 'all':
        if (data.tab !== tab || leads) return;
        followed = true;
        options.frames(data.frames);
        return options.status(data.status);
      case 'frames':
        // Without the earlier frames, later ones would focusOn like everything.
        if (followed && !leads) options.frames(data.frames);
        return;
      case 'status':
        if (!leads) options.status(data.status);
        return;
      case 'focus':
        wanted.set(data.tab, data.actors);
        if (leads) focus();
        return;
      case 'left':
        wanted.delete(data.tab);
        if (leads) focus();
    }
  };

  const release = new AbortController();
  const ended = new Promise<void>((done) => release.signal.addEventListener('abort', () => done()));
  void navigator.locks
    .request(options.name, { signal: release.signal }, async () => {
      leads = true;
      const end = options.lead();
      // Tabs that opened without a leader ask now.
      post({ kind: 'lead' });
      focus();
      await ended;
      end();
    })
    .catch(() => {});
  post({ kind: 'join', tab });
  const left = (): void => post({ kind: 'left', tab });
  addEventListener('pagehide', left);

  return {
    get leads() {
      return leads;
    },
    publish: (frames) => {
      if (leads) post({ kind: 'frames', frames });
    },
    publishStatus: (now) => {
      status = now;
      if (leads) post({ kind: 'status', status });
    },
    focusOn: (actors) => {
      mine = actors;
      if (leads) focus();
      else post({ kind: 'focus', tab, actors });
    },
    close: () => {
      left();
      removeEventListener('pagehide', left);
      release.abort();
      channel.close();
    },
  };
}
