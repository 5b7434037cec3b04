#!/usr/bin/env node
/** The process of the `troupe` command: passes on its arguments and its io, and ends with the exit code. */
import { endProcess, processIo } from './command-io.ts';
import { enableCompileCache } from './compile-cache.ts';
import { troupe } from './troupe.ts';

enableCompileCache();
void troupe(process.argv.slice(2), processIo()).then(endProcess);
