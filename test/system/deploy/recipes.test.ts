/** The recipes of examples/deploy: their times agree with the server's, their commands run, and the tools that read them accept them. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { parse, parseAllDocuments } from 'yaml';
import { z } from 'zod';
import deployed from '../../../examples/deploy/server.ts';
import { Cli } from '../../cli/cli.ts';
import { startable } from '../../harness/compiled.ts';
import { suite } from '../../harness/door.ts';
import { SCALE } from '../../harness/scale.ts';

const test = suite('recipes');
const folder = fileURLToPath(new URL('../../../examples/deploy/', import.meta.url));
const read = (file: string): string => readFileSync(join(folder, file), 'utf8');
const temporary = mkdtempSync(join(tmpdir(), 'troupe-recipes-'));
test.after(() => rmSync(temporary, { recursive: true, force: true }));

const has = (command: string, ...args: readonly string[]): boolean => spawnSync(command, args).status === 0;

/** Seconds after which a supervisor may kill the server. */
const { limits, http } = deployed.options;
const STOP_SECONDS = ((limits?.graceMs ?? 0) + (http?.drainDelayMs ?? 0)) / 1_000 + 5;

const Words = z.array(z.string());
const words = (line: string | undefined): readonly string[] => Words.parse(JSON.parse(line ?? ''));

/** The instructions of the last stage, without comments, each on one line. */
const stages = read('Dockerfile')
  .replace(/^#.*\n/gm, '')
  .replace(/\\\n\s*/g, '')
  .split(/^(?=FROM )/m)
  .map((stage) => stage.split('\n').filter(Boolean));
const instruction = (name: string): string | undefined =>
  stages
    .at(-1)
    ?.find((line) => line.startsWith(`${name} `))
    ?.slice(name.length + 1);
const command = words(instruction('CMD'));
const optionsOf = (args: readonly string[]): readonly string[] => args.filter((arg) => arg.startsWith('--'));

test('the image is built in two stages without scripts, and runs as a user without a shell', () => {
  assert.is(stages.filter(([from = '']) => from.startsWith('FROM node:')).length, 2);
  assert.ok(stages.flat().includes('RUN npm ci --omit=dev --ignore-scripts'));
  const last = stages.at(-1) ?? [];
  assert.ok(last.indexOf('USER node') > 0 && last.indexOf('USER node') < last.findIndex((line) => /^CMD/.test(line)));
  assert.equal(command.slice(0, 3), ['node_modules/.bin/troupe', 'serve', 'server.ts']);
  assert.is(instruction('VOLUME'), command[command.indexOf('--data') + 1]);
});

test('its command serves, its health check passes, and SIGTERM makes it unready and then ends it', async () => {
  const at: Readonly<Record<string, string>> = {
    '0.0.0.0:3000': '0.0.0.0:0',
    '0.0.0.0:9464': '127.0.0.1:0',
    '/data': join(temporary, 'data'),
    // Quick: the command takes half a second of processor time to compile it.
    'server.ts': SCALE === 'quick' ? startable(join(folder, 'server.ts')) : join(folder, 'server.ts'),
  };
  const cli = new Cli(command.slice(1).map((word) => at[word] ?? word));
  await cli.said('Claude Desktop');
  const port = /at http:\/\/0\.0\.0\.0:(\d+)\/mcp/.exec(cli.err)?.[1] ?? '';
  const metrics = /metrics at (http:\S+)\/metrics/.exec(cli.err)?.[1] ?? '';
  const check = words(/ CMD (.*)$/.exec(instruction('HEALTHCHECK') ?? '')?.[1]);
  assert.is(check[0], 'node');
  const healthy = (): number | null =>
    spawnSync(
      process.execPath,
      check.slice(1).map((word) => word.replace(':3000/', `:${port}/`)),
    ).status;
  assert.match(check[2] ?? '', ':3000/healthz');
  assert.is(healthy(), 0);
  assert.is((await fetch(`${metrics}/readyz`)).status, 200);
  cli.process.kill('SIGTERM');
  await cli.said('shutting down: SIGTERM');
  assert.equal(await (await fetch(`${metrics}/readyz`)).json(), { ready: false, reasons: ['draining'] });
  assert.is(healthy(), 0);
  // Its five seconds for balancers are those of readiness.test.ts, by a clock that a test moves.
  cli.process.kill('SIGKILL');
  await cli.exit;
  assert.is(healthy(), 1);
});

const Compose = z.object({
  services: z.object({
    orders: z.looseObject({
      read_only: z.literal(true),
      init: z.literal(true),
      cap_drop: z.tuple([z.literal('ALL')]),
      stop_grace_period: z.literal(`${STOP_SECONDS}s`),
      volumes: z.tuple([z.literal('data:/data')]),
      ports: z.tuple([z.literal('127.0.0.1:3000:3000')]),
      environment: z.object({ OTEL_EXPORTER_OTLP_ENDPOINT: z.literal('http://collector:4318') }),
    }),
    collector: z.looseObject({ volumes: z.tuple([z.literal('./collector.yaml:/etc/collector.yaml:ro')]) }),
  }),
  volumes: z.object({ data: z.object({}) }),
});
const Named = z.record(z.string(), z.unknown());
const Pipeline = z.object({ receivers: Words, processors: Words, exporters: Words });
const Collector = z.object({
  receivers: z.looseObject({
    prometheus: z.object({
      config: z.object({
        scrape_configs: z.tuple([
          z.looseObject({ static_configs: z.tuple([z.object({ targets: z.tuple([z.literal('orders:9464')]) })]) }),
        ]),
      }),
    }),
  }),
  processors: Named,
  exporters: Named,
  service: z.object({ pipelines: z.record(z.string(), Pipeline) }),
});

test('compose: the server is confined and has its time to stop; the collector reads its metrics', () => {
  Compose.parse(parse(read('compose.yaml')));
  const { receivers, processors, exporters, service } = Collector.parse(parse(read('collector.yaml')));
  for (const [name, pipeline] of Object.entries(service.pipelines)) {
    for (const each of pipeline.receivers) assert.ok(each in receivers, name);
    for (const each of pipeline.processors) assert.ok(each in processors, name);
    for (const each of pipeline.exporters) assert.ok(each in exporters, name);
  }
});

const Labels = z.record(z.string(), z.string());
const probe = (path: string) => z.looseObject({ httpGet: z.object({ path: z.literal(path), port: z.literal('mcp') }) });
const Deployment = z.object({
  apiVersion: z.literal('apps/v1'),
  kind: z.literal('Deployment'),
  metadata: z.looseObject({ name: z.string() }),
  spec: z.object({
    replicas: z.number().min(2),
    selector: z.object({ matchLabels: Labels }),
    strategy: z.object({
      type: z.literal('RollingUpdate'),
      rollingUpdate: z.object({ maxUnavailable: z.literal(0), maxSurge: z.literal(1) }),
    }),
    template: z.object({
      metadata: z.looseObject({ labels: Labels }),
      spec: z.object({
        terminationGracePeriodSeconds: z.literal(STOP_SECONDS),
        automountServiceAccountToken: z.literal(false),
        securityContext: z.looseObject({ runAsNonRoot: z.literal(true), runAsUser: z.number().min(1) }),
        containers: z.tuple([
          z.looseObject({
            args: Words,
            ports: z.array(z.object({ name: z.string(), containerPort: z.number() })),
            readinessProbe: probe('/readyz'),
            livenessProbe: probe('/healthz'),
            securityContext: z.object({
              allowPrivilegeEscalation: z.literal(false),
              readOnlyRootFilesystem: z.literal(true),
              capabilities: z.object({ drop: z.tuple([z.literal('ALL')]) }),
            }),
          }),
        ]),
        volumes: z.array(z.looseObject({ name: z.string() })),
      }),
    }),
  }),
});
const Service = z.object({
  apiVersion: z.literal('v1'),
  kind: z.literal('Service'),
  metadata: z.object({ name: z.string() }),
  spec: z.object({
    selector: Labels,
    sessionAffinity: z.literal('ClientIP'),
    ports: z.tuple([z.object({ name: z.string(), port: z.number(), targetPort: z.literal('mcp') })]),
  }),
});
const Budget = z.object({
  apiVersion: z.literal('policy/v1'),
  kind: z.literal('PodDisruptionBudget'),
  metadata: z.object({ name: z.string() }),
  spec: z.object({ maxUnavailable: z.literal(1), selector: z.object({ matchLabels: Labels }) }),
});

test('Kubernetes: the selectors, ports and commands agree, and the grace period is that of the server', () => {
  const documents = parseAllDocuments(read('kubernetes.yaml')).map((document) => document.toJS() as unknown);
  const [deployment, service, budget] = z.tuple([Deployment, Service, Budget]).parse(documents);
  const { selector, template } = deployment.spec;
  assert.equal(template.metadata.labels, selector.matchLabels);
  assert.equal(service.spec.selector, selector.matchLabels);
  assert.equal(budget.spec.selector, selector);
  const [{ args, ports }] = template.spec.containers;
  assert.equal(args.slice(0, 3), command.slice(0, 3));
  for (const option of optionsOf(args)) assert.ok(command.includes(option), option);
  for (const { containerPort } of ports) assert.ok(args.includes(`0.0.0.0:${containerPort}`), String(containerPort));
  // A probe must notice within the time for which the server still serves.
  const { periodSeconds = 10, failureThreshold = 3 } = z
    .looseObject({ periodSeconds: z.number(), failureThreshold: z.number() })
    .parse(template.spec.containers[0].readinessProbe);
  assert.ok(periodSeconds * failureThreshold * 1_000 < (http?.drainDelayMs ?? 0));
});

const unit = read('orders.service');
const setting = (name: string): string | undefined => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1];

test('systemd: the unit has the time of the server to stop, and the command of the image', () => {
  assert.is(setting('TimeoutStopSec'), String(STOP_SECONDS));
  assert.equal(
    ['Type', 'KillMode', 'Restart', 'RestartPreventExitStatus', 'DynamicUser', 'ProtectSystem', 'NoNewPrivileges'].map(
      setting,
    ),
    ['exec', 'mixed', 'on-failure', '1 2', 'yes', 'strict', 'yes'],
  );
  const [node, ...args] = (setting('ExecStart') ?? '').split(' ');
  assert.is(node, '/usr/bin/node');
  assert.ok(args[0]?.endsWith(`/${command[0]}`));
  assert.equal(args.slice(1, 3), command.slice(1, 3));
  for (const option of optionsOf(args)) assert.ok(command.includes(option), option);
});

test.full('the exit status of a program that cannot be loaded prevents a restart', async () => {
  const broken = join(temporary, 'broken.mjs');
  writeFileSync(broken, 'throw new Error("no");');
  const codes = [new Cli(['serve', broken, '--http', '0']), new Cli(['serve', broken, '--http', 'x'])];
  assert.equal(
    await Promise.all(codes.map(({ exit }) => exit)),
    (setting('RestartPreventExitStatus') ?? '').split(' ').map(Number),
  );
});

if (has('systemd-analyze', '--version'))
  test('systemd-analyze accepts the unit, and rates its exposure at most 3.0', () => {
    const file = join(temporary, 'orders.service');
    writeFileSync(file, unit.replace('/usr/bin/node', process.execPath));
    const verified = spawnSync('systemd-analyze', ['verify', file], { encoding: 'utf8' });
    assert.equal([verified.status, verified.stderr], [0, '']);
    const args = ['security', '--offline=true', '--threshold=30', '--no-pager', file];
    const rated = spawnSync('systemd-analyze', args, { encoding: 'utf8' });
    assert.is(rated.status, 0, rated.stdout + rated.stderr);
    assert.match(rated.stdout, 'Overall exposure level');
  });
else test.skip('systemd-analyze accepts the unit', 'no systemd-analyze here');

if (has('docker', 'info'))
  test('docker finds no fault in the Dockerfile', () => {
    const checked = spawnSync('docker', ['build', '--check', folder], { encoding: 'utf8' });
    assert.is(checked.status, 0, checked.stdout + checked.stderr);
  });
else test.skip('docker finds no fault in the Dockerfile', 'no docker daemon answers here');
