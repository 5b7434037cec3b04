/** What one client does with one upstream behind the gateway: it calls, reads, is asked, sees progress and cancels. */

import { inTime } from '../../harness/wait.ts';
import type { Loose } from '../../system/clients/official.ts';
import type { ProofClient } from './clients.ts';
import type { Step, Upstream } from './upstreams.ts';

/** The letters of a cell, in the order of the steps. */
export const LEGEND =
  'T lists and calls a tool, L lists one that it cannot call, R reads a resource, P gets a prompt, Q is asked, G sees progress, C cancels; - the upstream or the client has none; ! fails';

/** What the client has listed. */
export interface Lists {
  readonly tools: readonly Loose[];
  readonly resources: readonly Loose[];
  readonly prompts: readonly Loose[];
}

/** What a client got from an upstream: a letter for each step, and the failures. */
export interface Cell {
  readonly letters: string;
  readonly failures: readonly string[];
}

/** The name of an element behind the gateway, as docs/gateway.md says. */
const offered = (upstream: Upstream, name: string): string => `${upstream.name}_${name}`;

/** The URI of a resource behind the gateway. */
const offeredUri = ({ name }: Upstream, uri: string): string =>
  uri.startsWith('ui://') ? `ui://${name}/${uri.slice('ui://'.length)}` : `${name}+${uri}`;

/** Does with one upstream what the client and the upstream can. */
export async function converse(client: ProofClient, upstream: Upstream, lists: Lists): Promise<Cell> {
  const failures: string[] = [];
  let letters = '';
  const step = async (letter: string, has: object | undefined, body: () => Promise<void>): Promise<void> => {
    if (!has) {
      letters += '-';
      return;
    }
    try {
      await inTime(body(), 'a step');
      letters += letter;
    } catch (error) {
      letters += '!';
      failures.push(`${letter}: ${error instanceof Error ? error.message : String(error)}`);
    }
  };
  const call = (wanted: Step): Promise<Loose> => client.callTool(offered(upstream, wanted.name), { ...wanted.args });
  const { tool, resource, prompt, question, progress, cancel } = upstream;
  const calls = client.converses || question?.name !== tool.name ? tool : undefined;
  await step(calls ? 'T' : 'L', tool, async () => {
    if (!lists.tools.some(({ name }) => name === offered(upstream, tool.name)))
      throw new Error(`no ${tool.name} in the list`);
    if (calls) expected(await call(calls), calls);
  });
  await step('R', resource, async () => {
    if (resource) expected(await client.readResource(offeredUri(upstream, resource.name)), resource);
  });
  await step('P', prompt, async () => {
    if (!prompt) return;
    if (!lists.prompts.some(({ name }) => name === offered(upstream, prompt.name)))
      throw new Error(`no ${prompt.name} in the list`);
    const args = Object.fromEntries(Object.entries(prompt.args ?? {}).map(([name, value]) => [name, String(value)]));
    expected(await client.getPrompt(offered(upstream, prompt.name), args), prompt);
  });
  await step('Q', client.converses ? question : undefined, async () => {
    if (question) expected(await call(question), question);
  });
  await step('G', client.converses ? progress : undefined, async () => {
    if (!progress) return;
    const before = client.reports();
    const onProgress = (): void => {};
    expected(await client.callTool(offered(upstream, progress.name), { ...progress.args }, { onProgress }), progress);
    if (client.reports() === before) throw new Error('no report of progress came');
  });
  await step('C', client.converses ? cancel : undefined, async () => {
    if (!cancel) return;
    const controller = new AbortController();
    const waiting = client.callTool(offered(upstream, cancel.name), { ...cancel.args }, { signal: controller.signal });
    const ended = waiting.then(
      (result) => {
        throw new Error(`expected that the call ends with its cancellation, got ${JSON.stringify(result)}`);
      },
      () => {},
    );
    // The upstream answers this after it has begun the call that waits, or in a process of its own.
    expected(await call(tool), tool);
    controller.abort(new Error('no tea'));
    await ended;
    expected(await call(tool), tool);
  });
  failures.push(...client.faults().map((fault) => `wire: ${fault}`));
  return { letters, failures: failures.map((failure) => `${upstream.name} ${failure}`) };
}

function expected(result: Loose, { name, expect }: Step): void {
  const text = JSON.stringify(result);
  if (result.isError === true || !expect.test(text))
    throw new Error(`${name}: expected ${expect}, got ${text.slice(0, 500)}`);
}
