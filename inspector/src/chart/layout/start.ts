/** Provides layouts: from a worker that starts with the first chart, from a cache, or from an exported page. */

import { DIRECTIONS, type Direction, type Pane, type PlacedChart } from '../../../../src/features/charts/placed.ts';
import { type Measure, type Sketch, sketch } from '../../../../src/features/charts/sketch.ts';
import type { ChartNode } from '../../../../src/inspector/frames.ts';
import { type Carried, carriedPictures } from './carried.ts';
import { type Engine, layoutSketch } from './layout.ts';
import type { LayoutAnswer, LayoutRequest } from './worker.ts';
import workerUrl from './worker.ts?worker&url';

/** A picture for each direction. */
export type Pictures = readonly PlacedChart[];

/** The only Trusted Types policy of the page; its header names it in `trusted-types`. */
export const POLICY = 'troupe-worker';
/** Time limit of the worker for one chart. After that, the page lays out the chart itself. */
const PATIENCE_MS = 20_000;
const MOST_KEPT = 200;

/** The pane for layouts in advance: that of the last chart. */
let lastPane: Pane = { width: 800, height: 600 };

const done = new Map<string, Pictures>(Object.entries(carriedPictures()));
const kept = new Map([...done].map(([id, ready]) => [id, Promise.resolve(ready)]));

/**
 * The pictures of a chart in both directions. The one that fills the pane better got more tries. Equal ids have equal
 * charts, so each chart is laid out once.
 */
export function picturesOf(id: string, chart: ChartNode, measure: Measure, pane = lastPane): Promise<Pictures> {
  lastPane = pane;
  const known = kept.get(id);
  hurry(id);
  if (known !== undefined) return known;
  const oldest = kept.size >= MOST_KEPT ? kept.keys().next().value : undefined;
  if (oldest !== undefined) forget(oldest);
  const pictures = draw(id, sketch(chart, measure), pane);
  kept.set(id, pictures);
  pictures.then(
    (ready) => done.set(id, ready),
    () => forget(id),
  );
  return pictures;
}

/** Maximum number of lines of a chart with a draft: the page lays it out itself, in some milliseconds. */
const MOST_DRAFTED = 40;

/**
 * Pictures of a small chart by dagre, in this thread. The worker with ELK is a file of 1.5 MB and takes a second or more
 * for its first layout; a reader sees the draft until then.
 *
 * @returns undefined for a large chart, and if the page was opened as a file
 */
export async function draftOf(chart: ChartNode, measure: Measure, pane: Pane): Promise<Pictures | undefined> {
  const sketched = sketch(chart, measure);
  if (sketched.edges.length > MOST_DRAFTED || location.protocol === 'file:') return undefined;
  const layoutHere = await hereLayout();
  return Promise.all(DIRECTIONS.map((direction) => layoutHere(sketched, direction, pane)));
}

/** The finished pictures of a chart. */
export function readyPictures(id: string): Pictures | undefined {
  return done.get(id);
}

/** All finished pictures, for an exported page. */
export function allPictures(): Carried {
  return Object.fromEntries(done);
}

function forget(id: string): void {
  kept.delete(id);
  done.delete(id);
}

async function draw(id: string, sketched: Sketch, pane: Pane): Promise<Pictures> {
  const placed = await inWorker(id, sketched, pane);
  if (placed !== undefined) return placed;
  const layoutHere = await hereLayout();
  return Promise.all(DIRECTIONS.map((direction) => layoutHere(sketched, direction, pane)));
}

/** The layout without a worker, with dagre: in separate files, which a page that was opened as a file cannot load. */
async function hereLayout(): Promise<(sketched: Sketch, direction: Direction, pane: Pane) => Promise<PlacedChart>> {
  try {
    const [{ dagreLayout }, { layoutPacked }] = await Promise.all([import('./dagre.ts'), import('./pack.ts')]);
    const dagre: Engine = (sketched, direction) => Promise.resolve(dagreLayout(sketched, direction));
    return (sketched, direction, pane) => layoutPacked(sketched, direction, [dagre], pane);
  } catch {
    return (sketched, direction) => layoutSketch(sketched, direction, []);
  }
}

/**
 * A request to the worker. Requests are sent one at a time, so that a visible chart need not wait for invisible ones.
 */
interface Asked {
  readonly id: string;
  readonly sketch: Sketch;
  readonly pane: Pane;
  readonly settle: (placed: Pictures | undefined) => void;
}

let worker: Worker | undefined;
let broken = false;
let asked = 0;
let current: Asked | undefined;
let timer: ReturnType<typeof setTimeout> | undefined;
const queue: Asked[] = [];

function inWorker(id: string, sketched: Sketch, pane: Pane): Promise<Pictures | undefined> {
  if (theWorker() === undefined) return Promise.resolve(undefined);
  return new Promise((settle) => {
    queue.push({ id, sketch: sketched, pane, settle });
    askNext();
  });
}

/** Moves a chart to the front, because it is visible. */
function hurry(id: string): void {
  const at = queue.findIndex((each) => each.id === id);
  queue.unshift(...(at > 0 ? queue.splice(at, 1) : []));
}

function askNext(): void {
  if (current !== undefined || worker === undefined) return;
  current = queue.shift();
  if (current === undefined) return;
  asked += 1;
  timer = setTimeout(giveUp, PATIENCE_MS);
  const request: LayoutRequest = { id: asked, sketch: current.sketch, pane: current.pane };
  worker.postMessage(request);
}

function answered({ data: { id, placed } }: MessageEvent<LayoutAnswer>): void {
  if (id !== asked || current === undefined) return;
  clearTimeout(timer);
  const { settle } = current;
  current = undefined;
  settle(placed.length === 0 ? undefined : placed);
  askNext();
}

function theWorker(): Worker | undefined {
  if (broken || worker !== undefined) return worker;
  if (location.protocol === 'file:') return undefined;
  try {
    worker = new Worker(trusted(new URL(workerUrl, import.meta.url).href), { type: 'module', name: 'layout' });
    worker.onmessage = answered;
    worker.onerror = giveUp;
  } catch {
    broken = true;
  }
  return worker;
}

/** The worker does not start or hangs: the page continues without it. */
function giveUp(): void {
  broken = true;
  worker?.terminate();
  worker = undefined;
  clearTimeout(timer);
  const unanswered = current === undefined ? queue.splice(0) : [current, ...queue.splice(0)];
  current = undefined;
  for (const { settle } of unanswered) settle(undefined);
}

let policy: { createScriptURL(url: string): string } | undefined;

/** Chromium requires a policy for the address of a worker. It only admits our own. */
function trusted(url: string): string {
  const { trustedTypes } = globalThis;
  if (trustedTypes === undefined) return url;
  policy ??= trustedTypes.createPolicy(POLICY, {
    createScriptURL: (asked: string) => {
      if (new URL(asked).origin !== location.origin)
        throw new TypeError(`the layout worker is not from ${location.origin}`);
      return asked;
    },
  });
  return policy.createScriptURL(url);
}
