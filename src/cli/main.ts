#!/usr/bin/env node
/** The process of the `troupe` command: passes on its arguments and its io, and ends with the exit code. */
import { endProcess, processIo } from './command-io.ts';
import { troupe } from './command-line.ts';
import { enableCompileCache } from './compile-cache.ts';
import { endWithNpm } from './npm-parent.ts';

enableCompileCache();
endWithNpm(process.env);
void troupe(process.argv.slice(2), processIo()).then(endProcess);
