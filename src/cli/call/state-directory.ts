/** The user's state directory, with the tokens of `troupe login`. */
import { homedir } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';
import { isWindows } from '../../transports/socket-path.ts';

/** @param data `--data DIR`, if it was given. @returns the path of the token file */
export function tokenFile(data: string | undefined): string {
  return join(data === undefined ? stateDirectory() : resolve(data), 'tokens.db');
}

function stateDirectory(): string {
  const { XDG_STATE_HOME: state, LOCALAPPDATA: local } = process.env;
  if (isWindows) return join(local ?? join(homedir(), 'AppData', 'Local'), 'troupe');
  return join(state !== undefined && isAbsolute(state) ? state : join(homedir(), '.local', 'state'), 'troupe');
}
