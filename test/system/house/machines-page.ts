/** Writes machines/README.md: what people have written in it stays, the picture and the table of each machine come from the machine. Run it with npm run machines. */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { type AnyStateMachine, StateMachine } from 'xstate';
import { Chart } from '../../../machines/chart/chart.ts';
import { readChart } from '../../../src/core/kernel/charts/chart.ts';
import { toTable } from '../../../src/core/kernel/charts/table.ts';
import { toMermaid } from '../../../src/features/charts/mermaid.ts';
import { moduleUrl } from '../../harness/compiled.ts';

/** What is between the two is replaced. */
const BLOCK = /(<!-- from machines\/([\w-]+)\.ts -->\n)[\s\S]*?(<!-- end -->)/g;

const page = fileURLToPath(new URL('../../../machines/README.md', import.meta.url));

/** The page as it has to be. */
export async function machinesPage(): Promise<string> {
  const text = readFileSync(page, 'utf8');
  const names = [...text.matchAll(BLOCK)].map(([, , name = '']) => name);
  const drawn = new Map<string, string>();
  for (const name of names) drawn.set(name, draw(await loadMachine(name)));
  return text.replace(BLOCK, (_, begin: string, name: string, end: string) => `${begin}${drawn.get(name)}${end}`);
}

function draw(machine: AnyStateMachine): string {
  const chart = readChart(machine);
  return `\n\`\`\`mermaid\n${toMermaid(chart)}\`\`\`\n\n${toTable(chart)}\n`;
}

/** The machine that machines/NAME.ts exports. @throws {Error} if it exports none */
export async function loadMachine(name: string): Promise<AnyStateMachine> {
  const module: Record<string, unknown> = await import(moduleUrl(`machines/${name}.ts`));
  const exported = `${name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())}Machine`;
  const machine = module[exported];
  if (machine instanceof Chart) return machine.machine;
  if (machine instanceof StateMachine) return machine;
  throw new Error(`machines/${name}.ts: expected it to export ${exported}`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) writeFileSync(page, await machinesPage());
