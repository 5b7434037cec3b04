/** `--coverage`: says on stderr which states and transitions were visited, when the process ends, and whenever SIGUSR2 asks for it. */
import { watchCoverage } from '../../inspector/stream/coverage-counter.ts';
import type { Server } from '../../server.ts';
import { say } from '../usage.ts';

/** Counts from now on. There is one server in a process that is covered. */
export function reportCoverage(command: string, server: Server): void {
  const coverage = watchCoverage(server);
  const report = (): void => say(`troupe ${command}: coverage\n${coverage}`);
  process.on('exit', report);
  if (process.platform !== 'win32') process.on('SIGUSR2', report);
}
