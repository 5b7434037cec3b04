/** Folders of skills, and the official host of skills as their reader. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { SkillsClient } from '@modelcontextprotocol/client/ext/skills';
import type { Server } from '../../../src/index.ts';
import { Tree } from '../discovery/tree.ts';

/** The text of a SKILL.md. */
export function skillFile(name: string, description = `Does ${name}`, more = ''): string {
  return `---\nname: ${name}\ndescription: ${description}\n${more}---\n\n# ${name}\n`;
}

/** A folder with these skills: the text of each file by its path. */
export function skillTree(files: Readonly<Record<string, string>>): Tree {
  return new Tree(files);
}

export interface Host {
  readonly client: Client;
  readonly skills: SkillsClient;
}

/** The official client, connected to a server in this process. */
export async function officialHost(server: Server, revision: '2025-11-25' | '2026-07-28'): Promise<Host> {
  const transport = new StreamableHTTPClientTransport(new URL('http://127.0.0.1/mcp'), {
    fetch: (input, init) => server.fetch(new Request(input, init)),
  });
  const client = new Client(
    { name: 'host', version: '1.0.0' },
    revision === '2025-11-25'
      ? { supportedProtocolVersions: [revision] }
      : { versionNegotiation: { mode: { pin: revision } } },
  );
  await client.connect(transport);
  return { client, skills: new SkillsClient(client) };
}

/** Reads every file of every skill, and has the official client verify each: the number of files. */
export async function readAll({ skills }: Host): Promise<number> {
  const { skills: entries } = await skills.list();
  let files = 0;
  for (const entry of entries) {
    if (entry.resources === 'dynamic') throw new Error(`${entry.uri} is dynamic`);
    const { skill } = await skills.get(entry.uri);
    for (const { uri } of skill.resources === 'dynamic' ? [] : skill.resources) {
      const file = await skills.read(skill, uri);
      if (!file.verified) throw new Error(`${uri} is not verified`);
      files += 1;
    }
  }
  return files;
}
