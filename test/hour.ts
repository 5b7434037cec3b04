/**
 * `npm run test:hour`: the newcomer's hour from the packed package in an empty folder. It prints each step with its seconds, ends with a
 * table, and with 1 if a step fails. `-- --write` writes the seconds of the mistakes into docs/mistakes.md; other words choose parts.
 */
import { accessSync, constants, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Browsing, program } from './harness/browser.ts';
import { freePort } from './harness/free-port.ts';
import { COMMANDS } from './system/first-hour/commands.ts';
import { FirstHour } from './system/first-hour/first-hour.ts';
import { makeMistake } from './system/first-hour/make-mistake.ts';
import { MISTAKES } from './system/first-hour/mistakes.ts';
import { write } from './system/first-hour/mistakes-page.ts';
import { DEPLOY, END, PROJECT, PROXY, SEEN } from './system/first-hour/seeds.ts';
import { Examples, type Step, stepsOf } from './system/first-hour/steps.ts';

/** A part of the hour. Its steps rest on each other, unless they are independent. */
interface Part {
  readonly name: string;
  readonly steps: readonly HourStep[];
  readonly independent?: true;
  /** What this machine lacks for it. */
  readonly missing?: string | undefined;
}

interface HourStep {
  readonly title: string;
  run(): Promise<void>;
}

/** What came of a part. */
interface Ended {
  readonly name: string;
  readonly steps: number;
  readonly failed: number;
  readonly seconds: number;
  readonly missing?: string | undefined;
}

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const PICTURES = join(ROOT, 'dist/hour');
/** The widths of a desk and of a phone, in pixels. */
const SIZES = { desk: { width: 1440, height: 900 }, phone: { width: 390, height: 844 } } as const;
const VIEWS = ['Overview', 'Server'] as const;

const page = (file: string): string => readFileSync(join(ROOT, file), 'utf8');
const print = (line: string): void => void process.stdout.write(`${line}\n`);

/** The steps of the section "Start" of the README: its program is the file that the commands name. */
function readmeSteps(): readonly Step[] {
  const [, section = ''] = /^## Start\n([\s\S]*?)(?=^## )/m.exec(page('README.md')) ?? [];
  const named = section
    .replace(/^```ts$/m, '```ts server.ts')
    .replace(/^```text\n\$ (npx troupe dev .*)\n([\s\S]*?)```/m, (_, run: string, output: string) => {
      const shown = output.trimEnd();
      return `\`\`\`sh\n${run} &\n\`\`\`\n\`\`\`text\n${shown}\n\`\`\``;
    });
  return stepsOf(named);
}

const has = (command: string): boolean =>
  (process.env.PATH ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, command), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });

/** Runs blocks in the shell of the hour; a file is written into the directory in which the shell is. */
function typed(hour: FirstHour, steps: readonly Step[], examples: Examples): HourStep[] {
  return steps.map((step) => ({
    title: step.kind === 'file' ? `write ${step.name}` : (step.text.trim().split('\n')[0] ?? ''),
    async run() {
      if (step.kind === 'file') {
        const folder = (await hour.shell.run('pwd')).trim();
        writeFileSync(join(folder, step.name), step.text);
      } else await hour.shell.run(examples.filled(step.text), (output) => examples.match(step.output, output));
    },
  }));
}

const enter = (hour: FirstHour): HourStep => ({
  title: 'an empty folder',
  run: async () =>
    void (await hour.shell.run(`for job in $(jobs -p); do kill $job || true; done; wait; cd "${hour.folder}"`)),
});

/** Looks at the page in each size and theme, and checks that it shows the calls and the open question. */
function pictures(hour: FirstHour): HourStep[] {
  return Object.entries(SIZES).flatMap(([size, look]) =>
    (['light', 'dark'] as const).map((theme) => ({
      title: `pictures of the page: ${size}, ${theme}`,
      async run() {
        const log = readFileSync(join(hour.folder, 'seeds/dev.log'), 'utf8');
        const [, address = ''] = /inspector at (\S+)/.exec(log) ?? [];
        const browsing = new Browsing();
        try {
          const tab = await browsing.page({ ...look, theme });
          await tab.goto(address);
          // On a phone the tree of actors has the same names, and is not shown.
          await tab.locator('.calls-table tr', { hasText: 'find_lots' }).first().waitFor();
          await tab.locator('.waiting-table tr', { hasText: 'How many packets of leek-24?' }).first().waitFor();
          for (const view of VIEWS) {
            await tab.getByRole('tab', { name: view, exact: true }).click();
            if (view === 'Server') await tab.getByText('germination_report').first().waitFor();
            await tab.screenshot({ path: join(PICTURES, `${size}-${theme}-${view.toLowerCase()}.png`) });
          }
          await tab.getByRole('tab', { name: 'Overview', exact: true }).click();
          const wide = Number(await tab.evaluate('document.documentElement.scrollWidth - window.innerWidth'));
          if (wide > 0) throw new Error(`the page is ${wide} pixels wider than the window`);
          if (browsing.complaints.length > 0) throw new Error(browsing.complaints.join('\n'));
        } finally {
          await browsing.close();
        }
      },
    })),
  );
}

/** @param seconds receives those of each mistake */
function mistakes(hour: FirstHour, seconds: number[]): HourStep[] {
  const install: HourStep = {
    title: 'install what the mistakes need',
    run: async () =>
      void (await hour.shell.run(
        `cd "${hour.folder}"\nmkdir mistakes\ncd mistakes\nnpm init -y\nnpm pkg set type=module\nnpm install troupe zod xstate jose\nnpm install --save-dev tsx typescript @types/node`,
      )),
  };
  const rows = MISTAKES.flatMap(({ title: group, mistakes: some }) =>
    some.map((mistake) => ({
      title: `${group}: ${mistake.title}`,
      async run() {
        const name = `${group}-${mistake.title}`.replace(/\W+/g, '-');
        const told = await makeMistake(mistake, hour, 'mistakes', name);
        if (told.seconds === undefined) throw new Error(`expected the words\n${mistake.says}\nin\n${told.output}`);
        seconds.push(told.seconds);
        print(`    says after ${told.seconds.toFixed(1)} s: ${mistake.says.split('\n')[0]}`);
      },
    })),
  );
  return [install, ...rows];
}

async function play({ name, steps, independent, missing }: Part): Promise<Ended> {
  if (missing !== undefined) return { name, steps: 0, failed: 0, seconds: 0, missing };
  print(`\n${name}`);
  const began = performance.now();
  let failed = 0;
  for (const { title, run } of steps) {
    if (failed > 0 && !independent) {
      failed += 1;
      print(`  not run  ${title}`);
      continue;
    }
    const at = performance.now();
    try {
      await run();
      print(`  ${((performance.now() - at) / 1_000).toFixed(1).padStart(5)} s  ${title}`);
    } catch (error) {
      failed += 1;
      print(`  FAILED   ${title}\n${error instanceof Error ? error.message : String(error)}`);
    }
  }
  return { name, steps: steps.length, failed, seconds: (performance.now() - began) / 1_000 };
}

const words = process.argv.slice(2);
const chosen = words.filter((word) => !word.startsWith('--'));
const began = performance.now();
const hour = await FirstHour.packed();
print(`${((performance.now() - began) / 1_000).toFixed(1)} s  npm pack, and a registry on loopback`);
mkdirSync(PICTURES, { recursive: true });
const examples = new Examples();
examples.set('3000', String(await freePort()));
examples.set('$PORT', String(await freePort()));
examples.set('$PROXY', String(await freePort()));
const seconds: number[] = [];
const parts: readonly Part[] = [
  { name: 'README', steps: [enter(hour), ...typed(hour, readmeSteps(), examples)] },
  {
    name: 'tutorial and commands',
    steps: [enter(hour), ...typed(hour, [...stepsOf(page('docs/tutorial.md')), ...COMMANDS], examples)],
  },
  { name: 'own server', steps: [enter(hour), ...typed(hour, PROJECT, examples)] },
  { name: 'sign-in', steps: typed(hour, DEPLOY, examples) },
  {
    name: 'proxy',
    steps: typed(hour, PROXY, examples),
    missing: has('caddy') ? undefined : 'caddy is not installed',
  },
  {
    name: 'page',
    steps: [...typed(hour, [...END, ...SEEN], examples), ...pictures(hour)],
    missing: program === undefined ? 'no Chromium' : undefined,
  },
  { name: 'mistakes', steps: mistakes(hour, seconds), independent: true },
];
const ended: Ended[] = [];
try {
  for (const part of parts)
    if (chosen.length === 0 || chosen.some((word) => part.name.includes(word))) ended.push(await play(part));
} finally {
  await hour.close();
}
print(`\n${'part'.padEnd(24)}steps  failed  seconds`);
for (const { name, steps, failed, seconds: took, missing } of ended)
  print(
    name.padEnd(24) +
      (missing === undefined
        ? `${String(steps).padStart(5)}${String(failed).padStart(8)}${took.toFixed(1).padStart(9)}`
        : `skipped: ${missing}`),
  );
const failures = ended.reduce((total, { failed }) => total + failed, 0);
if (words.includes('--write') && failures === 0 && seconds.length > 0) write(seconds);
print(`\n${failures} failed; the pictures are in dist/hour`);
process.exit(failures === 0 ? 0 : 1);
