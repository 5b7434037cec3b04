/** A tool of the simulated server that is a statechart: it takes a step, asks, waits, takes another, and asks again. */
import { assign, setup } from 'xstate';
import * as z from 'zod';
import { elicitWith, fromSteps } from '../../../src/index.ts';
import type { ToolArgs, ToolWorld } from './tools.ts';

const ANSWER = z.object({ word: z.string() });

/** @param done takes a step as other tools do. @param said what the call comes to */
export function chartMachine(
  world: Pick<ToolWorld, 'violated'>,
  done: (nonce: string, name: string, step: (run: () => Promise<string>) => Promise<string>) => Promise<string>,
  said: (args: ToolArgs, what: string) => string,
  wordFor: (canary: string) => string,
) {
  const taken = (name: string) =>
    fromSteps<ToolArgs, string>(({ input, step }) => done(input.nonce, name, (run) => step(name, run)));
  return setup({
    types: { context: {} as { args: ToolArgs; heard: readonly string[] }, input: {} as ToolArgs },
    actors: { find: taken('find'), send: taken('send'), ask: elicitWith(ANSWER) },
    delays: { pause: ({ context }) => context.args.ms },
  }).createMachine({
    id: 'chart',
    context: ({ input }) => ({ args: input, heard: [] }),
    initial: 'finding',
    states: {
      finding: {
        invoke: {
          src: 'find',
          input: ({ context }) => context.args,
          onDone: { target: 'asking', actions: assign({ heard: ({ event }) => [event.output] }) },
        },
      },
      asking: {
        invoke: {
          id: 'word',
          src: 'ask',
          input: ({ context }) => ({ message: `Which word, for ${context.args.nonce}?` }),
          onDone: {
            target: 'judging',
            actions: assign({
              heard: ({ context: { args, heard }, event: { output } }) => {
                if (output.status === 'accepted' && output.content.word !== wordFor(args.canary))
                  world.violated(`I4: ${args.nonce} was answered "${output.content.word}"`);
                return [...heard, output.status];
              },
            }),
          },
        },
      },
      judging: {
        always: [{ guard: ({ context }) => context.heard.length < 3, target: 'waiting' }, { target: 'over' }],
      },
      waiting: { after: { pause: 'sending' } },
      sending: {
        invoke: { src: 'send', input: ({ context }) => context.args, onDone: 'asking' },
      },
      over: { type: 'final' },
    },
    output: ({ context }) => said(context.args, context.heard.join(', ')),
  });
}
