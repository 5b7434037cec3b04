/** One stream for all tabs of one server: a browser opens six connections to it at most. One tab leads, and tells the others. */
import type { Frame } from '../../../src/inspector/frames.ts';
import type { StreamStatus } from './stream.ts';

type Told =
  | { readonly kind: 'frames'; readonly frames: readonly Frame[] }
  | { readonly kind: 'status'; readonly status: StreamStatus }
  /** Another tab leads from now on: whoever waits may ask it. */
  | { readonly kind: 'lead' }
  /** A tab has come, and asks for what was told so far. */
  | { readonly kind: 'join'; readonly tab: string }
  | { readonly kind: 'all'; readonly tab: string; readonly frames: readonly Frame[]; readonly status: StreamStatus }
  | { readonly kind: 'focus'; readonly tab: string; readonly actors: readonly string[] }
  | { readonly kind: 'left'; readonly tab: string };

export interface SharedOptions {
  /** Tabs with one name share a stream. */
  readonly name: string;
  readonly tab: string;
  /** This tab leads: it opens the stream. @returns ends it */
  lead(): () => void;
  /** What has been told so far. */
  all(): readonly Frame[];
  /** From the tab that leads. */
  frames(frames: readonly Frame[]): void;
  status(status: StreamStatus): void;
  /** What all tabs together look at; only the leader hears it. */
  focus(actors: readonly string[]): void;
}

export interface Shared {
  readonly leads: boolean;
  /** The leader has heard frames: the others are told. */
  tell(frames: readonly Frame[]): void;
  tellStatus(status: StreamStatus): void;
  look(actors: readonly string[]): void;
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
  const post = (told: Told): void => channel.postMessage(told);
  // What is selected comes first: the server looks at the first of them.
  const focus = (): void => {
    const all = [mine, ...wanted.values()];
    options.focus([...new Set([...all.flatMap(([first]) => first ?? []), ...all.flat()])]);
  };

  channel.onmessage = ({ data }: MessageEvent<Told>) => {
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
        // Before all that was told, what follows would look like all there is.
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
      // Those that came while nobody led ask now.
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
    tell: (frames) => {
      if (leads) post({ kind: 'frames', frames });
    },
    tellStatus: (now) => {
      status = now;
      if (leads) post({ kind: 'status', status });
    },
    look: (actors) => {
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
