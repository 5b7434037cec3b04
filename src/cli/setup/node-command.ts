/** The command with which a desktop program, which no shell has started, finds this Node. */
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** The directories that such programs search. Those of version managers, such as nvm, are known to shells only. */
const SEARCHED: readonly string[] = ['/usr/bin', '/bin', '/usr/local/bin', '/opt/homebrew/bin'];

interface NodePlace {
  readonly platform: string;
  /** The variable PATH. */
  readonly path: string;
  readonly execPath: string;
  isProgram(file: string): boolean;
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** @returns `node`, or its absolute path. On Windows, PATH is the same for all programs. */
export function nodeCommand(place: Partial<NodePlace> = {}): string {
  const {
    platform,
    path,
    execPath,
    isProgram: runs,
  } = {
    ...{ platform: process.platform, path: process.env.PATH ?? '', execPath: process.execPath, isProgram },
    ...place,
  };
  if (platform === 'win32') return 'node';
  const first = path.split(delimiter).find((directory) => directory !== '' && runs(join(directory, 'node')));
  return first !== undefined && SEARCHED.includes(first) ? 'node' : execPath;
}
