/** Reads frames from the server while the page is open, and reconnects when the stream breaks. */
import type { Frame } from '../../../src/inspector/frames.ts';
import { ask, Refused } from './api.ts';

export type StreamStatus =
  | { readonly state: 'connecting' }
  | { readonly state: 'live' }
  | { readonly state: 'lost'; readonly why: string; readonly waitMs: number }
  | { readonly state: 'refused'; readonly why: string };

export interface StreamOptions {
  /** The name of this viewer, which its focus requests use. */
  readonly viewer: string;
  /** The sequence number of the last known record. */
  since(): number;
  frames(frames: readonly Frame[]): void;
  /** The page was served with a recording instead of a server. The stream has ended. */
  recording(text: string, name: string): void;
  status(status: StreamStatus): void;
}

export interface Stream {
  /** Reconnects at once. */
  hurry(): void;
  close(): void;
}

const FIRST_WAIT_MS = 400;
const LONGEST_WAIT_MS = 8_000;

export function openStream({ viewer, since, frames, recording, status }: StreamOptions): Stream {
  const closed = new AbortController();
  let hurry = (): void => {};
  let wait = FIRST_WAIT_MS;

  const run = async (): Promise<void> => {
    while (!closed.signal.aborted) {
      let why = 'the server ended the stream';
      try {
        const query = `viewer=${encodeURIComponent(viewer)}&since=${since()}`;
        const response = await ask(`api/stream?${query}`, { signal: closed.signal });
        if (response.headers.get('content-type') === 'application/json')
          return recording(await response.text(), nameIn(response));
        status({ state: 'live' });
        await read(response, (received) => {
          // Only a frame proves that the stream works again.
          wait = FIRST_WAIT_MS;
          frames(received);
        });
      } catch (error) {
        if (closed.signal.aborted) return;
        if (error instanceof Refused && (error.status === 401 || error.status === 403))
          return status({ state: 'refused', why: error.message });
        why = error instanceof Refused ? error.message : 'the server cannot be reached';
      }
      if (closed.signal.aborted) return;
      status({ state: 'lost', why, waitMs: wait });
      await pause(wait);
      wait = Math.min(wait * 2, LONGEST_WAIT_MS);
    }
  };
  const pause = (ms: number): Promise<void> =>
    new Promise((done) => {
      const timer = setTimeout(done, ms);
      hurry = () => {
        clearTimeout(timer);
        done();
      };
    });
  void run();
  return {
    hurry: () => hurry(),
    close: () => {
      closed.abort();
      hurry();
    },
  };
}

/** The file name of a recording. */
function nameIn(response: Response): string {
  const [, name = ''] = /filename\*=UTF-8''(\S+)/.exec(response.headers.get('content-disposition') ?? '') ?? [];
  return decodeURIComponent(name) || 'this recording';
}

/** Splits a stream into its events: `data:` lines up to an empty one. Passes on the frames of one chunk together. */
async function read(response: Response, deliver: (frames: readonly Frame[]) => void): Promise<void> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (!reader) return;
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += value;
    const events = rest.split('\n\n');
    rest = events.pop() ?? '';
    const received: Frame[] = [];
    for (const event of events) {
      const data = event
        .split('\n')
        .filter((line) => line.startsWith('data:'))
        .map((line) => line.slice(line.startsWith('data: ') ? 6 : 5));
      if (data.length === 0) continue;
      const frame: Frame | undefined = JSON.parse(data.join('\n'));
      if (frame) received.push(frame);
    }
    if (received.length > 0) deliver(received);
  }
}
