/** `troupe approvals`: lists the calls of a running server that wait for people, and decides about them. */
import { userInfo } from 'node:os';
import { isoOf } from '../../core/kernel/clock.ts';
import { isObject, messageOf } from '../../core/protocol/json.ts';
import { visibleJson, visibleLine, visibleText } from '../../core/protocol/visible-text.ts';
import type { CommandIo, ExitCode } from '../command-io.ts';
import { readOptions } from '../command-options.ts';
import { askInspector, findInspector, jsonOfAnswer, textOfAnswer } from '../serving/inspector-requests.ts';
import { print, say, UsageError } from '../usage.ts';

const OPTIONS = { server: 'URL|PID', as: 'NAME', reason: 'TEXT', remember: '', json: '' };

const HELP = `Usage: troupe approvals [list] [--json]
       troupe approvals show ID
       troupe approvals approve ID [--remember] [--reason TEXT]
       troupe approvals deny ID [--reason TEXT]
       troupe approvals revoke ID [--reason TEXT]

Lists the calls of a running server that wait for people, and what was remembered;
shows all that a person must see about one; and decides. The server needs an
inspector with control: start it with troupe dev FILE, or with
--inspect --inspect-control.

  --server URL|PID       the URL of the inspector, or the process of the server;
                         optional if only one inspected server is running
  --as NAME              who decides, for the audit; one person counts once.
                         Default: the user of this machine
  --reason TEXT          people see it; the model gets it as a quotation
  --remember             do not ask again, as the policy permits it
  --json                 print the list as JSON

ID may be shortened to its first characters.
`;

const DECISIONS = ['approve', 'deny', 'revoke'];
const ACTIONS = ['list', 'show', ...DECISIONS];

/** The members of an approval or a grant that the command shows. */
interface Shown {
  readonly id: string;
  readonly tool: string;
  readonly principal: string;
  readonly text: string;
  readonly until: number;
  readonly title?: string | undefined;
  readonly by?: unknown;
}

/** Runs the command. @throws {UsageError} */
export async function main(args: readonly string[], io: CommandIo): Promise<ExitCode> {
  const line = readOptions('approvals', args, OPTIONS);
  if (!line) return print(io, HELP);
  const { values, positionals } = line;
  const [action = 'list', id, ...more] = positionals;
  if (!ACTIONS.includes(action))
    throw new UsageError(`troupe approvals: expected ${ACTIONS.join(', ')}, got ${visibleLine(action)}`);
  if ((action === 'list') !== (id === undefined) || more.length > 0)
    throw new UsageError(
      `troupe approvals ${action}: expected ${action === 'list' ? 'nothing more' : 'one ID'}, got ${visibleLine(positionals.slice(1).join(' ')) || 'none'}`,
    );
  if (values.remember !== undefined && action !== 'approve')
    throw new UsageError('troupe approvals: --remember: expected with approve');
  try {
    const url = findInspector('approvals', values.server, io.env);
    const { open, grants } = readState(await jsonOfAnswer(await askInspector(url, '/api/approvals')));
    if (id === undefined)
      return print(io, values.json === undefined ? listOf(open, grants) : visibleJson({ open, grants }, 2));
    const found = theOne(id, action === 'revoke' ? [...open, ...grants] : open);
    if (action === 'show') return print(io, `${visibleText(found.text)}\n`);
    const body = JSON.stringify({
      ...{ action, approval: found.id, person: values.as ?? userInfo().username },
      ...(values.reason === undefined ? {} : { reason: values.reason }),
      ...(action === 'approve' ? { remember: values.remember !== undefined } : {}),
    });
    return print(io, `${visibleLine(await textOfAnswer(await askInspector(url, '/api/control', { body })))}\n`);
  } catch (error) {
    if (error instanceof UsageError) throw error;
    say(`troupe approvals: ${messageOf(error)}`);
    return 1;
  }
}

function listOf(open: readonly Shown[], grants: readonly Shown[]): string {
  const lines = [
    ...(open.length === 0 ? ['Nothing waits for people.'] : []),
    ...open.map(
      ({ id, title = '', tool, principal, until, by }) =>
        `${visibleLine(id)}  ${visibleLine(title)}: ${visibleLine(principal)} calls ${visibleLine(tool)}, until ${isoOf(until)}. Needs ${visibleLine(neededOf(by))}`,
    ),
    ...(grants.length === 0 ? [] : ['', 'Remembered:']),
    ...grants.map(
      ({ id, tool, principal, text, until }) =>
        `${visibleLine(id)}  ${visibleLine(tool)} of ${visibleLine(principal)}: ${visibleLine(text)}, until ${isoOf(until)}`,
    ),
  ];
  return `${lines.join('\n')}\n`;
}

function neededOf(by: unknown): string {
  const groups: readonly unknown[] = Array.isArray(by) ? by : [];
  return groups
    .flatMap((group) => (isObject(group) && Number(group.missing) > 0 ? [`${group.missing} × ${group.who}`] : []))
    .join(', and ');
}

/** @throws {Error} for an id that none or several have */
function theOne(id: string, all: readonly Shown[]): Shown {
  const found = all.filter((each) => each.id === id || each.id.startsWith(id));
  const [only, ...more] = found;
  if (only && more.length === 0) return only;
  throw new Error(
    only
      ? `${found.length} approvals begin with ${visibleLine(id)}: give more of the ID`
      : `nothing that waits has the ID ${visibleLine(id)}. See troupe approvals`,
  );
}

/** @throws {Error} for a response of another program */
function readState(value: unknown): { readonly open: readonly Shown[]; readonly grants: readonly Shown[] } {
  const { open, grants } = isObject(value) ? value : {};
  if (areShown(open) && areShown(grants)) return { open, grants };
  throw new Error('expected the approvals of an inspector, got another response. Is it of another version of troupe?');
}

function areShown(value: unknown): value is readonly Shown[] {
  return (
    Array.isArray(value) &&
    value.every(
      (each) =>
        isObject(each) &&
        [each.id, each.tool, each.principal, each.text].every((member) => typeof member === 'string') &&
        typeof each.until === 'number',
    )
  );
}
