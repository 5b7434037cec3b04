/** The file that `bin` of package.json names: it checks the version of Node, and then loads the command. */

/**
 * Writes the file. Node parses a whole file before it runs it, so this one is in the syntax of Node 4, and loads every other file
 * after the check.
 *
 * @param engine the range in `engines` of package.json, such as `>=20.19`
 * @param command the command, as `require` finds it from this file
 * @throws {Error} for a range of another form
 * @example firstFile('>=20.19', './command.js')
 */
export function firstFile(engine: string, command: string): string {
  const [, major, minor] = /^>=(\d+)\.(\d+)$/.exec(engine) ?? [];
  if (major === undefined || minor === undefined)
    throw new Error(`engines.node: expected >=MAJOR.MINOR, such as >=20.19, got ${engine}`);
  return `#!/usr/bin/env node
'use strict';
var version = process.versions.node.split('.').map(Number);
if (version[0] > ${major} || (version[0] === ${major} && version[1] >= ${minor})) require('${command}');
else {
  process.stderr.write(
    'troupe: expected Node.js ${major}.${minor} or later, got ' + process.version + ', which is ' + process.execPath + '.\\n' +
    'Install a newer Node.js (https://nodejs.org), or start troupe with the path of one.\\n' +
    'If an MCP client starts troupe, write that path as "command" of its entry.\\n'
  );
  process.exitCode = 1;
}
`;
}
