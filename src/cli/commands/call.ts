/** `troupe call TARGET [TOOL [key=value…]]`: lists what a server offers, calls its tools, reads resources, gets prompts. */

import { ClientError } from '../../client/client-errors.ts';
import type { Client } from '../../client/client-interface.ts';
import type { CallOptions, ConnectOptions } from '../../client/client-options.ts';
import { type JsonObject, messageOf } from '../../core/protocol/json.ts';
import { suggestion } from '../../core/protocol/near-miss.ts';
import { visibleJson, visibleLine } from '../../core/protocol/visible-text.ts';
import { promptArguments, readArguments, readWords, toolArguments, type Word } from '../call/call-arguments.ts';
import { readCallTarget } from '../call/call-target.ts';
import { EXIT, hasTerminal, Interrupt, tolerateClosedStdout, withClient } from '../call/command-client.ts';
import { ProgressBar } from '../call/progress-bar.ts';
import { ResultText } from '../call/result-text.ts';
import { listingText, listServer } from '../call/server-listing.ts';
import { ServerOutput } from '../call/server-output.ts';
import { TerminalForms } from '../call/terminal-forms.ts';
import { absolutePath, type CommandIo, type ExitCode } from '../command-io.ts';
import { type CommandLine, readOptions, wholeNumber } from '../command-options.ts';
import { CALLER_OPTIONS, readCaller } from '../serving/caller-option.ts';
import { print, say, UsageError } from '../usage.ts';

const OPTIONS = {
  json: '',
  args: 'JSON|@FILE|-',
  answer: 'KEY=VALUE…',
  read: 'URI',
  prompt: 'NAME',
  out: 'DIR',
  header: "'NAME: VALUE'…",
  timeout: 'MS',
  era: 'legacy|modern',
  data: 'DIR',
  openapi: '',
  'base-url': 'URL',
  ...CALLER_OPTIONS,
  'no-open': '',
};

const HELP = `Usage: troupe call TARGET [TOOL [KEY=VALUE…]]
       troupe call [TOOL [KEY=VALUE…]] -- COMMAND [ARGS…]
       troupe call TARGET --read URI
       troupe call TARGET --prompt NAME [KEY=VALUE…]

Lists what an MCP server offers, with its tools as TypeScript signatures. With
TOOL, calls the tool and prints its result.

TARGET is one of
  URL                    a server over HTTP, of any revision
  FILE, DIR              a program, as for troupe run; it is started for the call
  SOCKET                 the path of a socket (troupe serve --socket)
  DOCUMENT               an OpenAPI document, a file or a URL that ends in .json,
                         .yaml or .yml: its operations are tools
  -- COMMAND [ARGS…]     a program that speaks MCP on stdio, such as
                         -- npx -y some-server; no TARGET stands before it

KEY=VALUE is converted by the tool's schema. Repeat a KEY to fill a list.
KEY:=JSON passes JSON as it is.

  --args JSON|@FILE|-    all arguments as a JSON object, from FILE, or from stdin;
                         KEY=VALUE adds to it
  --json                 print the result, or the list, as JSON, and nothing else
  --read URI             read a resource
  --prompt NAME          get a prompt
  --out DIR              save images, audio and binary resources in DIR
  --answer KEY=VALUE     answer forms of the server; may be repeated. An answer
                         that no form accepts is a wrong argument (code 2)
  --header 'NAME: VALUE' send an HTTP header; may be repeated
  --timeout MS           milliseconds until the call times out (60000); progress
                         restarts the time
  --era legacy|modern    do not ask the server which revisions it speaks
  --data DIR             FILE or DIR: directory for its durable state, which the
                         next call with this option finds; URL: directory of
                         the stored tokens
  --openapi              TARGET is an OpenAPI document, whatever its name is
  --base-url URL         DOCUMENT: the address of the API, in place of its servers
  --principal NAME       who calls FILE or DIR ("local user"), to try its rules
  --scopes LIST          the scopes of that caller, separated by commas (all
                         of them for "local user", none for another NAME)
  --no-open              show the page to sign in, but open no browser

What a program that is started writes on stderr is passed on, dimmed on a terminal.
Forms of the server are asked on the terminal. Without one, and without
--answer, the server learns that it cannot ask: its questions stay open.
Ctrl-C cancels the call; pressed again, it ends.

Exit codes: 0 success; 1 the tool or the server reports an error; 2 wrong
arguments; 3 no connection; 4 not signed in; 130 interrupted.
`;

/** Runs the command. @throws {UsageError} */
export async function main(args: readonly string[], io: CommandIo): Promise<ExitCode> {
  const line = readOptions('call', args, OPTIONS, (name) => ` (an argument of a tool has no dashes: ${name}=VALUE)`);
  if (!line) return print(io, HELP);
  const { values, lists, positionals, rest } = line;
  const json = values.json !== undefined;
  const caller = readCaller('call', values);
  const target = readCallTarget('call', positionals, rest, lists.header ?? [], io, {
    ...{ caller, data: values.data, openapi: values.openapi, baseUrl: values['base-url'] },
  });
  const request = await readRequest(line, target.words, io);
  const answers = readWords('troupe call: --answer', lists.answer ?? []);
  const interactive = hasTerminal(io) && values.args !== '-';
  // Without a person and without `--answer` the client declares no questions: it could only refuse them.
  const answering = interactive || answers.length > 0;
  const bar = new ProgressBar(io.stderr);
  const output = new ServerOutput(io, () => bar.clear());
  const interrupt = new Interrupt('call', io);
  const ended = new AbortController();
  let mistaken: UsageError | undefined;
  const questions = new TerminalForms({
    terminal: interactive ? { input: io.stdin, output: io.stderr } : undefined,
    answers,
    open: values['no-open'] === undefined,
    say,
    // The server gets no answer: a question of an instance stays open.
    mistake: (text) => {
      mistaken ??= new UsageError(text);
      ended.abort(new Error('the answers do not fit the form'));
    },
    interrupt: () => interrupt.signalled(),
  });
  tolerateClosedStdout(io);
  const code = await withClient(
    {
      io,
      command: 'call',
      target,
      stderr: output.line,
      data: values.data,
      open: values['no-open'] === undefined,
      interactive,
      connect: {
        ...readEra(values.era),
        ...readTimeout(values.timeout),
        ...(answering && {
          elicit: (form, { signal }) => {
            bar.clear();
            return questions.form(form, signal);
          },
        }),
        ...(interactive && {
          elicitUrl: (page, { signal }) => {
            bar.clear();
            return questions.page(page, signal);
          },
        }),
      },
    },
    interrupt,
    async (client) => {
      interrupt.cancellable = true;
      const options: CallOptions = {
        signal: AbortSignal.any([interrupt.signal, ended.signal]),
        ...(io.stderr.isTTY === true ? { onProgress: (progress) => bar.show(progress) } : {}),
      };
      try {
        const note = (text: string): void => output.note(text);
        const code = await run(client, request, options, { io, json, out: values.out, answering, note });
        const { unused } = questions;
        if (code === 0 && unused !== undefined) mistaken ??= new UsageError(unused);
        else if (unused !== undefined) say(unused);
        if (mistaken) throw mistaken;
        return code;
      } catch (error) {
        if (mistaken) throw mistaken;
        if (!answering) explainQuestion(messageOf(error));
        if (request.type === 'tool' && error instanceof ClientError && error.reason === 'closed')
          say(`troupe call: the server's process ended while it ran the tool ${request.name}`);
        throw error;
      } finally {
        bar.clear();
      }
    },
  );
  output.end();
  return code;
}

/** The request of the command line. */
type Request =
  | { readonly type: 'list' }
  | { readonly type: 'read'; readonly uri: string }
  | { readonly type: 'prompt'; readonly name: string; readonly words: readonly Word[] }
  | {
      readonly type: 'tool';
      readonly name: string;
      readonly words: readonly Word[];
      readonly args: JsonObject | undefined;
    };

async function readRequest({ values }: CommandLine, words: readonly string[], io: CommandIo): Promise<Request> {
  const { read, prompt, args } = values;
  if (read !== undefined && prompt !== undefined)
    throw new UsageError('troupe call: expected --read or --prompt, got both');
  if (args !== undefined && (read !== undefined || prompt !== undefined || words.length === 0))
    throw new UsageError('troupe call: --args needs TOOL');
  if (read !== undefined) {
    if (words.length > 0) throw new UsageError(`troupe call: --read: expected no more words, got ${words.join(' ')}`);
    return { type: 'read', uri: read };
  }
  if (prompt !== undefined)
    return { type: 'prompt', name: prompt, words: readWords(`troupe call: prompt ${prompt}`, words) };
  const [name, ...more] = words;
  if (name === undefined) return { type: 'list' };
  return {
    type: 'tool',
    name,
    words: readWords(`troupe call: ${name}`, more),
    args: args === undefined ? undefined : await readArguments(args, io),
  };
}

function readEra(era: string | undefined): Pick<ConnectOptions, 'eras'> {
  if (era === undefined) return {};
  if (era === 'legacy' || era === 'modern') return { eras: era };
  throw new UsageError(`troupe call: --era: expected legacy or modern, got ${era}`);
}

const MAX_TIMEOUT_MS = 600_000;

function readTimeout(timeout: string | undefined): Pick<ConnectOptions, 'timeoutMs' | 'maxTimeoutMs'> {
  if (timeout === undefined) return {};
  const timeoutMs = wholeNumber('call', 'timeout', timeout, 0);
  return { timeoutMs, maxTimeoutMs: Math.max(timeoutMs, MAX_TIMEOUT_MS) };
}

/** A result without content prints nothing, which looks like a command that did nothing. */
const EMPTY = 'the result is empty';

/** The form of a result, and its destination. */
interface Printing {
  readonly io: CommandIo;
  readonly json: boolean;
  /** `--out DIR`. */
  readonly out: string | undefined;
  /** The client answers forms. */
  readonly answering: boolean;
  /** Prints a line about the result on stderr. */
  note(text: string): void;
}

/** Says how to answer, where an error names the capability that this client does not declare. */
function explainQuestion(error: string): void {
  if (/\belicitation\b/i.test(error))
    say('troupe call: the server asks, and there is no terminal. Answer with --answer key=value');
}

/** @returns the exit code */
async function run(
  client: Client,
  request: Request,
  options: CallOptions,
  { io, json, out, answering, note }: Printing,
): Promise<number> {
  const directory = out === undefined ? undefined : absolutePath(io, out);
  const text = new ResultText({ out: directory, terminal: io.stdout.isTTY === true });
  const shown = (value: unknown): string => visibleJson(value, 2);
  switch (request.type) {
    case 'list': {
      const offers = await listServer(client);
      return print(io, json ? shown({ ...offers }) : listingText(offers));
    }
    case 'read': {
      const result = await client.read(request.uri, options);
      if (!json && result.contents.length === 0) note(EMPTY);
      return print(io, json ? shown(result) : text.ofRead(result));
    }
    case 'prompt': {
      const prompts = await client.prompts();
      const prompt = prompts.find(({ name }) => name === request.name);
      if (!prompt)
        throw unknownName(
          'prompt',
          request.name,
          prompts.map(({ name }) => name),
        );
      const result = await client.prompt(prompt.name, promptArguments(prompt, request.words), options);
      if (!json && result.messages.length === 0) note(EMPTY);
      return print(io, json ? shown(result) : text.ofPrompt(result));
    }
    case 'tool': {
      const tools = await client.tools();
      const tool = tools.find(({ name }) => name === request.name);
      if (!tool)
        throw unknownName(
          'tool',
          request.name,
          tools.map(({ name }) => name),
        );
      const result = await client.call(tool.name, toolArguments(tool, request.words, request.args), options);
      const failed = result.isError === true;
      if (!json && result.content.length === 0 && result.structuredContent === undefined) note(EMPTY);
      if (json) io.stdout.write(shown(result));
      // The text of an error is not the output that a script waits for: people read it, in a terminal or a log.
      else if (failed) io.stderr.write(new ResultText({ out: directory, terminal: true }).ofCall(result));
      else io.stdout.write(text.ofCall(result));
      if (failed && !answering) explainQuestion(JSON.stringify(result.content));
      return failed ? EXIT.failed : 0;
    }
  }
}

function unknownName(what: string, name: string, known: readonly string[]): UsageError {
  const names = known.map((each) => visibleLine(each));
  const meant = suggestion(name, names);
  const list = names.length === 0 ? `The server has no ${what}s` : `It has ${names.join(', ')}`;
  return new UsageError(`troupe call: unknown ${what} ${name}${meant === '' ? `. ${list}` : meant}`);
}
