/** The processes that a process has started, and the memory of all of them. Linux only: elsewhere there are none. */
import { readdirSync, readFileSync } from 'node:fs';

/** The processes whose command has the word, without this one. */
export function processesWith(word: string): readonly number[] {
  return entries().filter((pid) => pid !== process.pid && commandOf(pid).includes(word));
}

/** The command of a process; empty if it has ended. */
export function commandOf(pid: number): string {
  return read(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim();
}

/** @returns the process, if it runs, and its descendants */
export function treeOf(pid: number): readonly number[] {
  const children = new Map<number, number[]>();
  for (const entry of entries()) {
    const parent = parentOf(entry);
    if (parent !== undefined) children.set(parent, [...(children.get(parent) ?? []), entry]);
  }
  const tree: number[] = parentOf(pid) === undefined ? [] : [pid];
  for (const each of tree) tree.push(...(children.get(each) ?? []));
  return tree;
}

/** Memory of the processes in MiB; what several of them share is counted once (`Pss` of proc(5)). */
export function mebibytesOf(pids: readonly number[]): number {
  const kilobytes = pids.map((pid) => Number(/^Pss:\s+(\d+) kB/m.exec(read(`/proc/${pid}/smaps_rollup`))?.[1] ?? 0));
  return Math.round(kilobytes.reduce((sum, each) => sum + each, 0) / 1_024);
}

function entries(): readonly number[] {
  return process.platform === 'linux'
    ? readdirSync('/proc')
        .filter((name) => /^\d+$/.test(name))
        .map(Number)
    : [];
}

/** Undefined of a process that has ended. */
function parentOf(pid: number): number | undefined {
  const [, state, parent] = /\) (\S) (\d+)/.exec(read(`/proc/${pid}/stat`)) ?? [];
  return state === undefined || state === 'Z' ? undefined : Number(parent);
}

function read(file: string): string {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return '';
  }
}
