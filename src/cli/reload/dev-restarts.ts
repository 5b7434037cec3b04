/** Runs `troupe dev` on a terminal in a process of its own, starts it again for the key `r`, and restores the terminal however it ends. */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { constants } from 'node:os';
import { isObject } from '../../core/protocol/json.ts';
import type { ExitCode } from '../command-io.ts';
import type { InspectorAddress } from '../serving/inspecting.ts';
import type { RawInput } from './dev-keys.ts';

/** Tells the other process the address of its page: an open page finds the server again after a restart. */
const VARIABLE = 'TROUPE_DEV_PAGE';
const TOKEN_BYTES = 32;

/** Runs `troupe dev` in another process, again and again. @returns the exit code of the last one */
export async function runWithRestarts(terminal: RawInput): Promise<ExitCode> {
  const token = randomBytes(TOKEN_BYTES).toString('base64url');
  let port = 0;
  let restarted = false;
  // The terminal sends SIGINT and SIGHUP to both processes, and the other one decides how it ends.
  process.on('SIGINT', () => {}).on('SIGHUP', () => {});
  for (;;) {
    const child = spawn(process.execPath, [...process.execArgv, ...process.argv.slice(1)], {
      stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
      env: { ...process.env, [VARIABLE]: `${restarted ? 1 : 0} ${port} ${token}` },
    });
    let again = false;
    child.on('message', (message: unknown) => {
      if (!isObject(message)) return;
      if (typeof message.port === 'number') port = message.port;
      if (message.restart === true) again = true;
    });
    const stop = (): void => void child.kill('SIGTERM');
    process.on('SIGTERM', stop);
    const code = await new Promise<number>((resolve) =>
      child.once('exit', (exit, signal) => resolve(exit ?? 128 + (signal ? constants.signals[signal] : 0))),
    );
    process.off('SIGTERM', stop);
    // A process that was killed could not.
    terminal.setRawMode(false);
    if (!again) return code;
    restarted = true;
  }
}

/** The end of the process that serves. */
export interface RestartedProcess {
  readonly address: InspectorAddress;
  /** Tells the port of the page. */
  onPort(port: number): void;
  /** Asks for another process when this one has ended. */
  askRestart(): void;
}

/** Finds the parent that starts this process again. @returns undefined without such a parent */
export function restartedProcess(quit: () => void): RestartedProcess | undefined {
  const { [VARIABLE]: text } = process.env;
  // Programs that this one starts have another parent.
  delete process.env[VARIABLE];
  if (text === undefined || !process.send) return undefined;
  const [restarted, port = '', token = ''] = text.split(' ');
  const send = process.send.bind(process);
  process.once('disconnect', quit);
  process.channel?.unref();
  return {
    address: { restarted: restarted === '1', port: Number(port), token },
    onPort: (open) => void send({ port: open }),
    askRestart: () => void send({ restart: true }),
  };
}
