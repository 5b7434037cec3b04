/** The steps of a page: the files that its reader writes, and the commands that its reader types with the output that follows. */

import { withoutStalls } from '../../cli/agent.ts';

/** A fence with a file name, as in "```ts server.ts". */
export interface FileStep {
  readonly kind: 'file';
  readonly name: string;
  readonly text: string;
}

/** A fence of the language `sh`, and the fence of the language `text` after it. */
export interface CommandStep {
  readonly kind: 'command';
  readonly text: string;
  /** What the page shows as output; `…` stands for any text. Empty if the page shows none. */
  readonly output: string;
}

export type Step = FileStep | CommandStep;

const FENCE = /^```([^\n`]*)\n([\s\S]*?)^```$/gm;

/** @throws for a fence that is no step: the page would show it, and no test would run it */
export function stepsOf(page: string): readonly Step[] {
  const steps: Step[] = [];
  for (const [, info = '', text = ''] of page.matchAll(FENCE)) {
    const [language, name] = info.split(' ');
    const last = steps.at(-1);
    if (name !== undefined) steps.push({ kind: 'file', name, text });
    else if (language === 'sh') steps.push({ kind: 'command', text, output: '' });
    else if (language === 'text' && last?.kind === 'command' && last.output === '')
      steps[steps.length - 1] = { ...last, output: text.trimEnd() };
    else throw new Error(`expected a file name, sh, or text after sh, got the fence "${info}":\n${text}`);
  }
  return steps;
}

/** A handle as the page shows it. Each run has another one. */
const HANDLE = /\b[\w-]{24}(?![\w-])/g;

/** The values of this run that stand where the page shows an example. */
export class Examples {
  readonly #values = new Map<string, string>();

  set(example: string, value: string): void {
    this.#values.set(example, value);
  }

  /** A text of the page with the values of this run. */
  filled(text: string): string {
    return [...this.#values].reduce((result, [example, value]) => result.replaceAll(example, value), text);
  }

  /** True if the shown output occurs in the output of this run. Learns the handles that the page shows for the first time. */
  match(shown: string, output: string): boolean {
    const unknown = new Set(
      [...shown.matchAll(HANDLE)].map(([handle]) => handle).filter((each) => !this.#values.has(each)),
    );
    const names = [...unknown];
    const literal = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
    const seen = new Set<string>();
    const pattern = this.filled(shown)
      .split(new RegExp(`(…|${[...names.map(literal), '$^'].join('|')})`))
      .map((part) => {
        if (part === '…') return '[\\s\\S]*?';
        const index = names.indexOf(part);
        if (index === -1) return literal(part);
        if (seen.has(part)) return `\\k<example${index}>`;
        seen.add(part);
        return `(?<example${index}>[\\w-]{24})`;
      })
      .join('');
    const found = new RegExp(`^${pattern}$`, 'm').exec(withoutStalls(output));
    for (const [index, name] of names.entries()) {
      const value = found?.groups?.[`example${index}`];
      if (value !== undefined) this.set(name, value);
    }
    return found !== null;
  }
}
