/** `troupe open RECORDING`: shows a recording in the inspector, without a running server. */
import { existsSync } from 'node:fs';
import { openInBrowser } from '../../client/browser.ts';
import { messageOf } from '../../core/protocol/json.ts';
import { visibleLine } from '../../core/protocol/visible-text.ts';
import { openRecording } from '../../inspector/open-recording.ts';
import { absolutePath, type CommandIo, type ExitCode, stopped } from '../command-io.ts';
import { readOptions } from '../command-options.ts';
import { noBrowser, print, say, UsageError } from '../usage.ts';

const OPTIONS = { port: 'PORT', 'no-open': '' };

const HELP = `Usage: troupe open RECORDING [--port PORT] [--no-open]

Shows a recording in the inspector, a local web page, without a running server:
a file of --record, or one that the page exported as JSON, also compressed by
gzip. The page is reachable only from this machine, with the token in its URL.
Ctrl-C ends it.

  --port PORT            the port on 127.0.0.1; default: any free port
  --no-open              open no browser
`;

/** Runs the command. @throws {UsageError} */
export async function main(args: readonly string[], io: CommandIo): Promise<ExitCode> {
  const line = readOptions('open', args, OPTIONS);
  if (!line) return print(io, HELP);
  const { values, positionals } = line;
  const [file, ...more] = positionals;
  if (file === undefined || more.length > 0)
    throw new UsageError(`troupe open: expected one RECORDING, got ${positionals.join(' ') || 'none'}`);
  const port = portOf(values.port);
  const path = absolutePath(io, file);
  if (!existsSync(path))
    throw new UsageError(`troupe open: expected RECORDING, a file, got ${visibleLine(file)}: no such file`);
  try {
    const log = (message: string): void => say(`troupe open: ${message}`);
    const page = await openRecording(path, { port, clock: io.clock, log });
    say(`troupe open: ${visibleLine(file)} at ${page.url}`);
    // The listener keeps no process alive.
    const hold = io.clock.hold();
    const end = stopped(io);
    if (values['no-open'] === undefined) openInBrowser(new URL(page.url), () => say(noBrowser('open')));
    await end;
    hold.cancel();
    await page.close();
    return 0;
  } catch (error) {
    say(`troupe open: ${visibleLine(file)}: ${visibleLine(messageOf(error))}`);
    return 1;
  }
}

/** @throws {UsageError} */
function portOf(value: string | undefined): number {
  if (value === undefined) return 0;
  const port = Number(value);
  if (/^\d+$/.test(value) && port < 65_536) return port;
  throw new UsageError(`troupe open: --port: expected a whole number from 0 to 65535, got ${visibleLine(value)}`);
}
