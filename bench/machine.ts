/** The machine that measures, as far as it says something of the figures: no names, no paths. */
import { cpus, totalmem } from 'node:os';

export interface Machine {
  readonly cores: number;
  readonly cpu: string;
  readonly gigabytes: number;
  readonly node: string;
  readonly platform: string;
}

export function machine(): Machine {
  const all = cpus();
  return {
    cores: all.length,
    cpu: all[0]?.model.trim() || 'unknown',
    gigabytes: Math.round(totalmem() / 2 ** 30),
    node: process.version,
    platform: `${process.platform} ${process.arch}`,
  };
}
