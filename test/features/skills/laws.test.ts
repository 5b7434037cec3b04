/** A law of skills: whatever folder the rules allow, the official host accepts its entries and verifies its files. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { grapheme } from '../../harness/character.ts';
import { suite } from '../../harness/door.ts';
import { loggedServer } from '../../harness/memory.ts';
import { atScale } from '../../harness/scale.ts';
import { Tree } from '../discovery/tree.ts';
import { officialHost, readAll } from './support.ts';

const test = suite('skills (laws)');

const word = fc.stringMatching(/^[a-z0-9]{1,8}$/);
const skillName = fc.array(word, { minLength: 1, maxLength: 4 }).map((words) => words.join('-'));

/** Text of any characters that YAML may contain. */
const text = (maxLength: number) =>
  fc
    .string({ unit: grapheme, minLength: 1, maxLength })
    .map((made) => made.replace(/[\p{Cc}\p{Cs}\u2028\u2029\uFEFF]/gu, ' '));

/** A name of a file, as a disk has it: any character but a separator, in at most 255 bytes. */
const fileName = fc
  .string({ unit: grapheme, minLength: 1, maxLength: 12 })
  .map((made) => made.replace(/[\p{Cc}\p{Cs}/\\]/gu, '_'))
  .filter((name) => !name.startsWith('.') && Buffer.byteLength(name) < 200 && !/^skill\.md$/i.test(name));

const path = fc.array(fileName, { minLength: 1, maxLength: 3 }).map((names) => names.join('/'));

const scalar = fc.oneof(
  text(40),
  fc.integer(),
  fc.boolean(),
  fc.constant(null),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
);

const skill = fc.record({
  description: text(200),
  more: fc.dictionary(
    word.map((name) => `x-${name}`),
    fc.oneof(
      scalar,
      fc.array(scalar, { maxLength: 3 }),
      fc.dictionary(
        word.map((name) => `k${name}`),
        scalar,
        { maxKeys: 3 },
      ),
    ),
    { maxKeys: 3 },
  ),
  metadata: fc.option(
    fc.dictionary(
      word.map((name) => `m${name}`),
      text(20),
      { maxKeys: 2, minKeys: 1 },
    ),
  ),
  lineEnd: fc.constantFrom('\n', '\r\n'),
  files: fc.dictionary(path, fc.uint8Array({ maxLength: 80 }), { maxKeys: 4 }),
});

type Made = typeof skill extends fc.Arbitrary<infer S> ? S : never;

function frontmatterOf(name: string, { description, more, metadata }: Made): object {
  return { name, description, ...more, ...(metadata ? { metadata } : {}) };
}

/** JSON is YAML, so each value is written as JSON in one line. */
function manifestOf(name: string, made: Made): string {
  const lines = Object.entries(frontmatterOf(name, made)).map(([key, value]) => `${key}: ${flow(value)}`);
  return ['---', ...lines, '---', '', `# ${name}`, ''].join(made.lineEnd);
}

/** YAML wants a space after each colon. */
function flow(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(flow).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([key, each]) => `${key}: ${flow(each)}`)
    .join(', ')}}`;
}

/** Writes a file. @returns false if a folder has its name, or a file the name of its folder */
function put(tree: Tree, name: string, bytes: Uint8Array | string): boolean {
  try {
    mkdirSync(dirname(tree.at(name)), { recursive: true });
    writeFileSync(tree.at(name), bytes, { flag: 'wx' });
    return true;
  } catch {
    return false;
  }
}

test('the official host accepts each entry, finds its frontmatter, and verifies each file', async () => {
  await fc.assert(
    fc.asyncProperty(fc.dictionary(skillName, skill, { minKeys: 1, maxKeys: 3 }), async (skills) => {
      const tree = new Tree();
      let files = 0;
      for (const [name, made] of Object.entries(skills)) {
        files += Number(put(tree, `${name}/SKILL.md`, manifestOf(name, made)));
        for (const [file, bytes] of Object.entries(made.files)) files += Number(put(tree, `${name}/${file}`, bytes));
      }
      const { server, logged } = loggedServer();
      await server.skills(tree.path, { watch: false, strict: true });
      const host = await officialHost(server, '2026-07-28');
      assert.is(await readAll(host), files);
      for (const entry of (await host.skills.list()).skills) {
        const made = skills[entry.frontmatter.name];
        // JSON has one zero.
        assert.equal(
          entry.frontmatter,
          made && JSON.parse(JSON.stringify(frontmatterOf(entry.frontmatter.name, made))),
        );
      }
      assert.equal(logged, []);
      await host.client.close();
      await server.close();
      tree.remove('.');
    }),
    { numRuns: atScale({ quick: 5, full: 75, proof: 150 }) },
  );
});
