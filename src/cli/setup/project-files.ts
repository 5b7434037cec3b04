/** The files of a new project: a server, its test, and what npm and the TypeScript compiler need. */

/** @param name the project's name, as npm accepts it @param troupe the copy of Troupe that the project installs: a range, or `file:` and a path */
export function projectFiles(name: string, troupe: string): Readonly<Record<string, string>> {
  return {
    'package.json': `${JSON.stringify(
      {
        name,
        version: '1.0.0',
        private: true,
        type: 'module',
        scripts: {
          dev: 'troupe dev server.ts',
          start: 'troupe run server.ts --data .data',
          // The shell finds the files: Node 20 would take the pattern for a name.
          test: 'node --import tsx --test *.test.ts',
          check: 'tsc --noEmit',
        },
        engines: { node: '>=20.19' },
        dependencies: { troupe, zod: '^4.2.0' },
        devDependencies: { '@types/node': '^20.19.0', tsx: '^4.20.0', typescript: '>=5.7' },
      },
      undefined,
      2,
    )}\n`,
    'tsconfig.json': `${JSON.stringify(
      {
        compilerOptions: {
          target: 'es2023',
          module: 'nodenext',
          moduleResolution: 'nodenext',
          strict: true,
          noEmit: true,
          allowImportingTsExtensions: true,
          skipLibCheck: true,
          types: ['node'],
        },
        include: ['*.ts'],
      },
      undefined,
      2,
    )}\n`,
    '.gitignore': 'node_modules/\n.data/\n.env\n',
    'server.ts': lines(
      "import { createServer } from 'troupe';",
      "import { z } from 'zod';",
      '',
      `const server = createServer({ name: '${name}', version: '1.0.0' });`,
      '',
      'server.tool(',
      "  'greet',",
      "  { description: 'Greets someone by name', input: z.object({ name: z.string() }) },",
      "  ({ name }) => 'Hello, ' + name + '!',",
      ');',
      '',
      '// `troupe dev`, `run` and `serve` serve the server that a module exports.',
      'export default server;',
    ),
    'server.test.ts': lines(
      "import assert from 'node:assert/strict';",
      "import { test } from 'node:test';",
      "import { connect } from 'troupe/client';",
      "import server from './server.ts';",
      '',
      "test('greet greets by name', async () => {",
      '  const client = await connect(server);',
      "  const { content } = await client.call('greet', { name: 'Ada' });",
      "  assert.deepEqual(content, [{ type: 'text', text: 'Hello, Ada!' }]);",
      '  await client.close();',
      '  await server.close();',
      '});',
    ),
  };
}

/** A file of these lines. */
function lines(...text: readonly string[]): string {
  return `${text.join('\n')}\n`;
}

/** Turns the name of a directory into one that npm accepts: lower case, and dashes for everything else. */
export function packageName(directory: string): string {
  const name = directory
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '');
  return name === '' ? 'mcp-server' : name.slice(0, 100);
}
