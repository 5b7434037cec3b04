/** The least that a supervisor does: it starts the server in a process of its own and copies its pipes. */
const { spawn } = require('node:child_process');

const server = spawn(process.execPath, process.argv.slice(2), { stdio: ['pipe', 'pipe', 'inherit'] });
server.on('exit', (code) => process.exit(code ?? 1));
process.stdin.pipe(server.stdin);
server.stdout.pipe(process.stdout);
