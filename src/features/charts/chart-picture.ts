/** Pictures of statecharts with the layout of the inspector's page, which the page's layout worker computes in a thread. */
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import type { ChartNode } from '../../core/kernel/charts/chart-node.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import { packageFile } from '../../core/kernel/package-files.ts';
import { isObject } from '../../core/protocol/json.ts';
import { drawChart, drawChartForPage } from './picture.ts';
import { betterIn, isPlaced, type Pane, type PlacedChart } from './placed.ts';
import { sketch, walk } from './sketch.ts';
import { textWidth } from './text-width.ts';

/** Time limit of the thread for one chart. */
const LAYOUT_MS = 20_000;
/** The picture of a chart with more states and transitions is a list: the time of a layout grows faster than the chart. */
const MAX_PARTS = 600;
const MAX_MEGABYTES = 384;
/** The shape of a picture, independent of its reader: equal charts have equal pictures. */
const PANE: Pane = { width: 1_000, height: 720 };
/** The shape of a picture that stands beside a form. */
const PAGE_PANE: Pane = { width: 340, height: 640 };

/** A chart is laid out once. A failed layout is kept, too, so that a reader cannot repeat the work. */
const layouts = new WeakMap<ChartNode, Promise<PlacedChart | undefined>>();
/** The end of the queue: a process has one layout thread at a time. A chart is in the queue at most once. */
let last: Promise<unknown> = Promise.resolve();

interface PictureOptions {
  readonly title: string;
  /** The paths of the active states, without their parents. */
  readonly active: readonly string[];
  readonly clock: Clock;
  /** Milliseconds to wait for the layout. Later, the picture is a list, and the layout serves the next picture. */
  readonly waitMs: number;
}

/** Draws a chart as SVG. The event loop stays free while a thread lays it out. */
export async function pictureOf(chart: ChartNode, options: PictureOptions): Promise<string> {
  const { title, active, clock, waitMs } = options;
  return drawChart(chart, title, active, await within(layoutOf(chart, clock), clock, waitMs));
}

/**
 * Draws a chart for a page that has a style of its own (picture.ts).
 *
 * @param widest the same chart with the longest text of each part in all languages: the picture has room for them
 * @returns undefined for a chart that cannot be laid out
 */
export async function pagePictureOf(
  chart: ChartNode,
  clock: Clock,
  widest: ChartNode = chart,
): Promise<string | undefined> {
  const placed = await layoutOf(widest, clock, PAGE_PANE);
  return placed && drawChartForPage(chart, placed);
}

function layoutOf(chart: ChartNode, clock: Clock, pane: Pane = PANE): Promise<PlacedChart | undefined> {
  let layout = layouts.get(chart);
  if (layout === undefined) {
    layout = partsOf(chart) > MAX_PARTS ? Promise.resolve(undefined) : inTurn(() => layoutInThread(chart, clock, pane));
    layouts.set(chart, layout);
  }
  return layout;
}

function partsOf(chart: ChartNode): number {
  let parts = 0;
  walk(chart, ({ edges }) => {
    parts += 1 + edges.length;
  });
  return parts;
}

function inTurn<T>(work: () => Promise<T>): Promise<T> {
  const done = last.then(work);
  last = done;
  return done;
}

async function within<T>(value: Promise<T>, clock: Clock, ms: number): Promise<T | undefined> {
  return new Promise((resolve) => {
    const timer = clock.after(ms, () => resolve(undefined));
    void value.then((result) => {
      timer.cancel();
      resolve(result);
    });
  });
}

/**
 * The page's worker expects the globals of a browser's worker. It is one file without imports, which the build has
 * compressed (inspector/build.ts).
 */
const START = `
const { parentPort, workerData } = require('node:worker_threads');
globalThis.self = globalThis;
globalThis.postMessage = (message) => parentPort.postMessage(message);
const file = require('node:zlib').brotliDecompressSync(require('node:fs').readFileSync(workerData));
require('node:vm').runInThisContext(file.toString());
parentPort.on('message', (data) => globalThis.onmessage({ data }));
`;

/** Never rejects. @returns undefined if the thread fails or exceeds its limit, or the page is not built */
async function layoutInThread(chart: ChartNode, clock: Clock, pane: Pane): Promise<PlacedChart | undefined> {
  const request = { id: 1, sketch: sketch(chart, textWidth), pane };
  let thread: Worker;
  try {
    thread = startThread();
  } catch {
    return undefined;
  }
  const placed = await new Promise<PlacedChart | undefined>((resolve) => {
    const limit = clock.after(LAYOUT_MS, () => resolve(undefined));
    const end = (data: unknown): void => {
      limit.cancel();
      resolve(pictureIn(data, pane));
    };
    thread.once('message', end);
    thread.once('error', end);
    thread.once('exit', end);
    thread.postMessage(request);
  });
  await thread.terminate();
  return placed;
}

/** @throws if the page is not built, or this process may start no threads */
function startThread(): Worker {
  const assets = packageFile('dist/inspector/assets/');
  const name = readdirSync(assets).find((file) => /^worker-.*\.js\.br$/.test(file));
  if (name === undefined) throw new Error(`no layout worker in ${assets.href}`);
  return new Worker(START, {
    eval: true,
    workerData: fileURLToPath(new URL(name, assets)),
    env: {},
    execArgv: [],
    // Nothing of a layout belongs on the output of a stdio server.
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: MAX_MEGABYTES },
  });
}

function pictureIn(data: unknown, pane: Pane): PlacedChart | undefined {
  if (!isObject(data) || !Array.isArray(data.placed) || !data.placed.every(isPlaced)) return undefined;
  return betterIn(pane, data.placed);
}
