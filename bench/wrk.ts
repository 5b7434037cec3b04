/** Load by wrk, which costs less of the machine than a generator in JavaScript: it tells throughput and times, and looks at the status alone. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { PreparedCall } from './http-requests.ts';
import type { Measured } from './measured.ts';

const run = promisify(execFile);
const SHORTEST_SECONDS = 1;
const LATE_MS = 30_000;

/** @returns how it is called, or nothing where it is not installed */
export async function findWrk(): Promise<string | undefined> {
  // It ends with 1 where it is only asked for its version.
  const said = await run('wrk', ['-v']).catch((error: unknown) => error);
  return /wrk/.test(String(Object(said).stdout)) ? 'wrk' : undefined;
}

/**
 * Calls for a while. One thread: with two, it would fight the server for the second processor.
 *
 * @throws {Error} when an answer is not 200, or none comes
 */
export async function wrk(
  command: string,
  url: URL,
  calls: readonly PreparedCall[],
  inFlight: number,
  ms: number,
): Promise<Measured> {
  const folder = await mkdtemp(join(tmpdir(), 'troupe-bench-'));
  try {
    const script = join(folder, 'call.lua');
    await writeFile(script, lua(calls));
    const seconds = Math.max(SHORTEST_SECONDS, Math.round(ms / 1_000));
    const args = ['-t1', `-c${inFlight}`, `-d${seconds}s`, '--latency', '-s', script, url.href];
    const { stdout } = await run(command, args, { timeout: seconds * 1_000 + LATE_MS });
    return read(stdout);
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** The same bytes in turns, but for the id: no two requests of a session in flight may have the same. */
function lua(calls: readonly PreparedCall[]): string {
  const pairs = calls.map((call) => {
    const text = call.bytes.toString('latin1');
    const at = text.indexOf(`"id":${call.id}`) + '"id":'.length;
    return `{ ${quoted(text.slice(0, at))}, ${quoted(text.slice(at + String(call.id).length))} }`;
  });
  return `local calls = { ${pairs.join(', ')} }
local id = 1000000
request = function()
  id = id + 1
  local call = calls[id % #calls + 1]
  return call[1] .. id .. call[2]
end
done = function(summary, latency)
  io.write(string.format("\\nBENCH %d %d %d %d %d\\n", summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(99), summary.errors.status + summary.errors.read + summary.errors.connect))
end
`;
}

/** A string of Lua. */
function quoted(part: string): string {
  return `"${part.replace(/[\\"]/g, '\\$&').replace(/\r/g, '\\r').replace(/\n/g, '\\n')}"`;
}

/** Reads the line that the script writes; wrk counts in microseconds. */
function read(stdout: string): Measured {
  const [requests = 0, micros = 0, p50 = 0, p99 = 0, errors = 0] =
    /\nBENCH (.*)\n/.exec(stdout)?.[1]?.split(' ').map(Number) ?? [];
  if (requests === 0 || errors > 0)
    throw new Error(`wrk: expected answers and no errors, got ${requests} answers and ${errors} errors\n${stdout}`);
  const perSecond = (requests / micros) * 1_000_000;
  return { perSecond, p50: p50 / 1_000, p99: p99 / 1_000, busy: 0, calls: requests };
}
