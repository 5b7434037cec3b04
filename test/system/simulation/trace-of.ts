/** Lives the worlds of the seeds that it is given, and writes the hash of each trace on a line. */
import { simulate } from './simulate.ts';

(async () => {
  for (const seed of process.argv.slice(2)) process.stdout.write(`${(await simulate(Number(seed))).hash}\n`);
})();
