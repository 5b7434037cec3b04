/** A thread of the sandboxes: runs one slice of a script after another, and holds the scripts that wait. */
import { parentPort, workerData } from 'node:worker_threads';
import type { Engine } from './engine.ts';
import { timeFile } from './processor-time.ts';
import { quickJsEngine } from './quickjs-engine.ts';
import type { SandboxMail, SandboxThreadData, SandboxThreadMail } from './sandbox-protocol.ts';
import { SandboxedScript } from './sandboxed-script.ts';
import type { ScriptSlice } from './script.ts';

/** Bytes of all scripts that wait: one may have several dozen megabytes. */
const MAX_WARM_BYTES = 67_108_864;

const { bounds, warm, shared, engine: compiled }: SandboxThreadData = workerData;
const signals = new Int32Array(shared);
/** The scripts that wait, by their runs, the one that waits longest first. */
const waiting = new Map<string, SandboxedScript>();
/** A sandbox that is made while the thread has nothing to do. */
let spare: SandboxedScript | undefined;
const NONE = -1;
/** The number of the running job. */
let job = NONE;

// Node says in the terminal of the server that the removal of types is experimental.
process.removeAllListeners('warning');

/** Counts that the script is alive. @returns whether its job was dropped */
function isDropped(): boolean {
  Atomics.add(signals, 1, 1);
  return Atomics.load(signals, 0) === job;
}

function say(mail: SandboxThreadMail): void {
  parentPort?.postMessage(mail);
}

async function handle(engine: Engine, mail: SandboxMail): Promise<void> {
  if (mail.type === 'drop') return forget(mail.run);
  job = mail.job;
  const slice = await rest(engine, mail);
  job = NONE;
  say({ type: 'rested', job: mail.job, slice, evicted: evict() });
  spare ??= await SandboxedScript.create(engine, bounds, isDropped);
}

async function rest(engine: Engine, mail: Exclude<SandboxMail, { type: 'drop' }>): Promise<ScriptSlice | undefined> {
  const { run, deliveries } = mail;
  let slice: ScriptSlice;
  let script: SandboxedScript;
  if (mail.type === 'begin') {
    forget(run);
    script = spare ?? (await SandboxedScript.create(engine, bounds, isDropped));
    spare = undefined;
    slice = script.begin(mail.script, deliveries);
  } else {
    const found = waiting.get(run);
    if (!found) return undefined;
    script = found;
    // The last one to be evicted.
    waiting.delete(run);
    slice = script.proceed(deliveries);
  }
  if (slice.end) script.dispose();
  else waiting.set(run, script);
  return slice;
}

function forget(run: string): void {
  waiting.get(run)?.dispose();
  waiting.delete(run);
}

/** Removes the scripts that are too many or too large. @returns their runs */
function evict(): readonly string[] {
  const evicted: string[] = [];
  let bytes = [...waiting.values()].reduce((sum, { memoryBytes }) => sum + memoryBytes, 0);
  for (const [run, { memoryBytes }] of waiting) {
    if (waiting.size <= warm && bytes <= MAX_WARM_BYTES) break;
    bytes -= memoryBytes;
    forget(run);
    evicted.push(run);
  }
  return evicted;
}

async function open(): Promise<void> {
  const engine = await quickJsEngine(compiled);
  // The second sandbox of a compiled engine takes ten times as long as any other.
  if (!compiled) (await SandboxedScript.create(engine, bounds, isDropped)).dispose();
  spare = await SandboxedScript.create(engine, bounds, isDropped);
  let last = Promise.resolve();
  // An error here ends the thread, and the sandboxes handle its end.
  parentPort?.on('message', (mail: SandboxMail) => {
    last = last.then(() => handle(engine, mail));
  });
  say({ type: 'ready', times: timeFile(), engine: engine.code });
}

void open();
