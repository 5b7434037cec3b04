/** Asks a person at a terminal for the inputs of a configuration (`${input:ID}`), as VS Code does. */
import { visibleLine } from '../../core/protocol/visible-text.ts';
import type { ConfiguredInput } from '../../gateway/inputs.ts';
import { EXIT } from '../call/command-client.ts';
import type { CommandIo } from '../command-io.ts';
import { TerminalLines } from '../terminal-lines.ts';

/**
 * Asks for each input. An empty answer is the default, or the first of the options.
 *
 * @returns the answers by their ids. An input without one is missing: the input of the terminal has ended
 * @example await askInputs([{ id: 'key', description: 'The key', password: true, fallback: undefined, options: [] }], io) // { key: 's3cret' }
 */
export async function askInputs(
  inputs: readonly ConfiguredInput[],
  { stdin, stderr, exit }: Pick<CommandIo, 'stdin' | 'stderr' | 'exit'>,
): Promise<Readonly<Record<string, string>>> {
  const lines = new TerminalLines(stdin, stderr, () => exit(EXIT.interrupted));
  const answers: Record<string, string> = {};
  try {
    for (const input of inputs) {
      const { options, password } = input;
      for (const [at, option] of options.entries()) lines.write(`  ${at + 1}) ${visibleLine(option)}\n`);
      let answer: string | undefined;
      while (answer === undefined) {
        const line = await lines.question(promptOf(input), { secret: password });
        if (line === undefined) return answers;
        answer = answerOf(input, line.trim());
        if (answer === undefined) lines.write(`  Expected a number from 1 to ${options.length}.\n`);
      }
      answers[input.id] = answer;
    }
    return answers;
  } finally {
    lines.close();
  }
}

/** @returns undefined for an answer that is none of the options */
function answerOf({ fallback, options }: ConfiguredInput, given: string): string | undefined {
  const answer = given === '' ? (fallback ?? options[0] ?? '') : given;
  return options.length === 0 || options.includes(answer) ? answer : options[Number(answer) - 1];
}

/** @example '  The key (key): ' */
function promptOf({ id, description, password, fallback, options }: ConfiguredInput): string {
  const about = description === undefined ? id : `${description} (${id})`;
  const choices = options.length === 0 ? '' : `, 1 to ${options.length}`;
  const proposed = fallback ?? options[0];
  return `  ${visibleLine(`${about}${choices}${proposed === undefined || password ? '' : ` [${proposed}]`}`)}: `;
}
