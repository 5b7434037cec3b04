/** What every client of the benchmark does for the process that measures it: calls echo, looks at each answer, and tells its times. */
import { fileURLToPath } from 'node:url';
import { answering, served } from '../servers/telling.mjs';

/** Characters of each text. */
const LENGTH = 64;

/** The server of a client over stdio. */
export const STDIO_SERVER = [process.execPath, fileURLToPath(new URL('../servers/echo.mjs', import.meta.url))];

/** What the command line asks for: `CLIENT URL|stdio legacy|modern`. */
export function asked() {
  const [target = 'stdio', era = 'legacy'] = process.argv.slice(2);
  return { url: target === 'stdio' ? undefined : new URL(target), isModern: era === 'modern' };
}

/**
 * Calls when it is asked to.
 *
 * @param {(text: string) => Promise<string>} echo one call, and the text of its answer
 * @param {() => Promise<unknown>} close ends the client
 */
export function calling(echo, close) {
  let count = 0;
  answering('call', async (ms, inFlight) => {
    const took = [];
    const before = process.cpuUsage();
    const started = performance.now();
    const end = started + Number(ms);
    const worker = async () => {
      // One call at least, as slow as the machine may be.
      do {
        count += 1;
        const text = String(count).padEnd(LENGTH, 'x');
        const at = performance.now();
        const answer = await echo(text);
        if (answer !== text) return `expected the echo of ${text}, got ${answer}`;
        took.push(performance.now() - at);
      } while (performance.now() < end);
      return undefined;
    };
    const faults = await Promise.all(Array.from({ length: Number(inFlight) }, worker));
    const seconds = (performance.now() - started) / 1_000;
    const { user, system } = process.cpuUsage(before);
    return { fault: faults.find((fault) => fault !== undefined), took, seconds, micros: user + system };
  });
  served('client:ready', () => void close().then(() => process.exit()));
}
