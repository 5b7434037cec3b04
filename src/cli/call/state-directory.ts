/** The user's state directory, with the tokens of `troupe login` and the catalogues of gateways. */
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { isWindows } from '../../core/transports/socket-path.ts';
import { absolutePath, type CommandIo, type Environment } from '../command-io.ts';

/** @param data `--data DIR`, if it was given. @returns the path of the token file */
export function tokenFile(data: string | undefined, io: Pick<CommandIo, 'cwd' | 'env'>): string {
  return join(data === undefined ? stateDirectory(io.env) : absolutePath(io, data), 'tokens.db');
}

/** The directory of the catalogues that gateways keep without `--data`. */
export function catalogueDirectory({ env }: Pick<CommandIo, 'env'>): string {
  return join(stateDirectory(env), 'catalogues');
}

function stateDirectory({ XDG_STATE_HOME: state, LOCALAPPDATA: local }: Environment): string {
  if (isWindows) return join(local ?? join(homedir(), 'AppData', 'Local'), 'troupe');
  return join(state !== undefined && isAbsolute(state) ? state : join(homedir(), '.local', 'state'), 'troupe');
}
