/** Counts the tokens of tools: reads a list of servers with their tools as JSON, and prints a table in Markdown. */
import { readFileSync } from 'node:fs';
import { Tiktoken } from 'js-tiktoken/lite';
import ranks from 'js-tiktoken/ranks/o200k_base';

const encoding = new Tiktoken(ranks);
const count = (value) => encoding.encode(JSON.stringify(value)).length;

const rows = JSON.parse(readFileSync(0, 'utf8')).map(({ name, tools }) => {
  const read = tools.map(({ name, description, inputSchema }) => ({ name, description, parameters: inputSchema }));
  return `| ${name} | ${tools.length} | ${count(read)} | ${count({ tools })} |`;
});
process.stdout.write(
  [
    '### Tokens of `tools/list` (o200k_base)',
    '',
    '| server | tools | for a model | on the wire |',
    '|---|---|---|---|',
    ...rows,
    '',
  ].join('\n'),
);
