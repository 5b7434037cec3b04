/**
 * Sources of frames: the server's stream, shared among tabs; the recording in this file; or a file that is dropped on
 * the page.
 */
import { effect } from '@preact/signals';
import {
  type ActorView,
  type CoverageFrame,
  FORMAT,
  type Frame,
  type Recording,
} from '../../../src/inspector/frames.ts';
import {
  type ActorLine,
  framesOf,
  holdsUnseen,
  KNOWS_HIBERNATING,
  LIVE,
  Model,
  tableOf,
} from '../../../src/inspector/model/index.ts';
import { ask, useToken } from './api.ts';
import { type Shared, share } from './share.ts';
import {
  brush,
  changed,
  connection,
  cursor,
  goLive,
  helloAt,
  mark,
  model,
  say,
  select,
  selection,
  show,
  tab,
  tick,
  version,
} from './state.ts';
import { openStream, type Stream, type StreamStatus } from './stream.ts';
import { takeToken } from './token.ts';

/**
 * Maximum numbers of open questions and tables in the focus: a viewer's focus is limited, and all tabs are one viewer.
 */
const MOST_QUESTIONS = 3;
const MOST_TABLES = 3;

/** The live model. It continues while a recording is shown. */
let live: Model | undefined;
let shared: Shared | undefined;
let stream: Stream | undefined;
let last: StreamStatus = { state: 'connecting' };

/** Opens the recording in this page, if there is one, or the stream of the server that served the page. */
export function begin(): void {
  const inside = document.getElementById('recording')?.textContent;
  if (inside) return openRecording(inside, 'this file');
  const token = takeToken();
  if (token === undefined) {
    connection.value = {
      state: 'refused',
      why: 'this address has no token. Open the printed address, including the part after the #',
    };
    return;
  }
  useToken(token);
  live = model.value;
  const viewer = crypto.randomUUID();
  shared = share({
    name: `troupe ${nameOf(token)}`,
    tab: viewer,
    lead: () => {
      stream = openStream({
        viewer,
        since: () => live?.newest ?? 0,
        frames: (frames) => {
          shared?.publish(frames);
          take(frames);
        },
        recording: (text, name) => {
          // Each tab reads the file itself.
          live = undefined;
          shared?.close();
          openRecording(text, name);
        },
        status: (status) => {
          shared?.publishStatus(status);
          stands(status);
        },
      });
      return () => stream?.close();
    },
    all: () => (live ? framesOf(live, true) : []),
    frames: take,
    status: stands,
    focus: (actors) => {
      // The server keeps the focus of an open stream. A new stream needs it again.
      focused = actors;
      if (last.state === 'live') sendFocus(viewer);
    },
  });
  let sent = '';
  effect(() => {
    version.value;
    const { actor, exchange, unseen } = selection.value;
    const { connection } = (exchange === undefined ? live?.actor(actor ?? '') : live?.exchanges.find(exchange)) ?? {};
    const actors = [
      ...(actor === undefined ? [] : [actor]),
      ...(connection === undefined ? [] : [tableOf(connection)]),
      ...(unseen === undefined ? [] : [unseen.table]),
      KNOWS_HIBERNATING,
      ...tables(),
      ...questions(),
    ];
    if (actors.join(' ') === sent) return;
    sent = actors.join(' ');
    shared?.focusOn(actors);
  });
  addEventListener('online', () => stream?.hurry());
  addEventListener('visibilitychange', () => {
    if (!document.hidden) stream?.hurry();
  });
  // Countdowns and the timeline advance without records.
  setInterval(() => {
    if (!document.hidden && connection.value.state === 'live') tick.value = performance.now();
  }, 250);

  function sendFocus(name: string): void {
    ask('api/focus', { body: { viewer: name, actors: focused } }).catch(() => {});
  }

  function stands(status: StreamStatus): void {
    last = status;
    if (status.state === 'live' && shared?.leads) sendFocus(viewer);
    if (connection.value.state !== 'recording') present(status);
  }
}

/** A name per token: two tokens belong to two starts of a server, and their tabs must not wait for each other. */
function nameOf(token: string): string {
  let hash = 0x811c9dc5;
  for (const character of token) hash = Math.imul(hash ^ character.charCodeAt(0), 0x01000193);
  return (hash >>> 0).toString(36);
}

/** Open input requests, tasks with one, and runs of scripts: the tree shows their deadlines. */
function questions(): readonly string[] {
  const open: string[] = [];
  for (const line of live?.actors.values() ?? [])
    if ((line.kind === 'ask' || line.kind === 'run' || (line.kind === 'task' && asks(line))) && line.aliveAt(LIVE))
      open.push(line.address);
  return open.slice(-MOST_QUESTIONS);
}

/** The state contains the number of input requests. */
function asks({ standings }: ActorLine): boolean {
  return standings.last?.state.startsWith('input_required') === true;
}

/** Tables with requests from before the observation. */
function tables(): readonly string[] {
  if (!live) return [];
  const found: string[] = [];
  for (const line of live.actors.values()) {
    if (line.kind !== 'requests' || !line.aliveAt(LIVE) || !holdsUnseen(live, line, LIVE)) continue;
    if (found.push(line.address) === MOST_TABLES) break;
  }
  return found;
}

let focused: readonly string[] = [];

function take(frames: readonly Frame[]): void {
  if (!live) return;
  const { restarts } = live;
  for (const frame of frames) {
    if (frame.type === 'hello') {
      helloAt.value = performance.now();
      // A client waits for nothing by itself: its readers come for the server behind it.
      if (frame.remote === true && live.hello === undefined && tab.value === 'overview') show('server');
    }
    live.take(frame);
  }
  if (live.restarts !== restarts && model.value === live) {
    select({});
    mark.value = undefined;
    goLive();
    say('The server restarted. This is its new process.');
  }
  if (live.bye !== undefined && connection.value.state === 'live') connection.value = { state: 'ended', why: live.bye };
  if (model.value === live) changed();
}

function present(status: StreamStatus): void {
  switch (status.state) {
    case 'live':
      connection.value = { state: 'live', shared: shared?.leads === false };
      return;
    case 'lost':
      connection.value = { state: 'lost', why: live?.bye ?? status.why, retryAt: performance.now() + status.waitMs };
      return;
    default:
      connection.value = status;
  }
}

export function retry(): void {
  stream?.hurry();
}

/** Shows a recording: the JSON document or its lines. The stream continues in the background. */
export function openRecording(text: string, name: string): void {
  const frames = framesIn(text);
  if (typeof frames === 'string') return say(`${name} cannot be shown: ${frames}`);
  const shown = new Model({ maxRecords: 500_000 });
  try {
    for (const frame of frames) shown.take(frame);
  } catch {
    return say(`${name} cannot be shown: it contains invalid frames`);
  }
  model.value = shown;
  connection.value = { state: 'recording', name };
  select({});
  brush.value = undefined;
  mark.value = undefined;
  cursor.value = LIVE;
  version.value += 1;
}

/** Returns from a recording to the server. */
export function backToLive(): void {
  if (!live) return;
  model.value = live;
  select({});
  brush.value = undefined;
  mark.value = undefined;
  goLive();
  present(last);
  version.value += 1;
}

/** The model of the server, also while a recording is shown. */
export const liveModel = (): Model | undefined => live;

/** Adds views that the page has requested. */
export function addViews(views: readonly ActorView[]): void {
  take(views.map((look) => ({ type: 'look', look })));
}

/** Adds the server's own count of visits. */
export function addCoverage(frame: CoverageFrame): void {
  take([frame]);
}

export const hasServer = (): boolean => live !== undefined;

/** @returns the frames, or the reason why the text has none */
function framesIn(text: string): readonly Frame[] | string {
  try {
    const whole: unknown = JSON.parse(text);
    if (!isRecording(whole)) return 'it is not a recording of troupe';
    if (whole.version !== FORMAT)
      return `it has format version ${whole.version}, and this page reads version ${FORMAT}`;
    return whole.frames;
  } catch {
    return linesIn(text);
  }
}

/** The recording of a killed server has no end: each of its lines is a frame. */
function linesIn(text: string): readonly Frame[] | string {
  const frames: Frame[] = [];
  for (const line of text.split('\n')) {
    const bare = line.trim().replace(/,$/, '');
    if (!bare.startsWith('{"type"')) continue;
    try {
      const frame: Frame = JSON.parse(bare);
      frames.push(frame);
    } catch {
      // The last line may be incomplete.
    }
  }
  return frames[0]?.type === 'hello' ? frames : 'it is not JSON, and its lines are not frames';
}

function isRecording(value: unknown): value is Recording {
  return (
    typeof value === 'object' &&
    value !== null &&
    'format' in value &&
    value.format === 'troupe-recording' &&
    'frames' in value &&
    Array.isArray(value.frames)
  );
}
