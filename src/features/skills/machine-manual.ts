/**
 * The manual of a machine as a skill: when to use it, which tool sends which event in which state, with which arguments, what
 * it does by itself, and its chart. It is made from the machine that runs, so it is never stale.
 */
import { Buffer } from 'node:buffer';
import type { AnyStateMachine, AnyStateNode } from 'xstate';
import { isFor, nodesOf, readChart } from '../../core/kernel/charts/chart.ts';
import { type ChartEdge, type ChartNode, conditionOf } from '../../core/kernel/charts/chart-node.ts';
import { toTable } from '../../core/kernel/charts/table.ts';
import { sha256 } from '../../core/kernel/sha256.ts';
import { ErrorCode, ProtocolError } from '../../core/protocol/errors.ts';
import { isJsonObject, isObject } from '../../core/protocol/json.ts';
import { SKILL_FILE, type SkillEntry, skillNameOf } from '../../core/protocol/skills.ts';
import type { ResourceContents, Tool } from '../../core/protocol/types.ts';
import { askedBy } from '../asking/invocations.ts';
import { toMermaid } from '../charts/mermaid.ts';
import type { AnyMachine } from '../machines/define-machine.ts';
import { signature } from '../machines/tools/handle-arguments.ts';
import { contentsOf } from './file-bytes.ts';
import type { ServedFile, ServedSkill, SkillSource } from './skill-source.ts';

/** Maximum number of characters of the description in the frontmatter, of 1,024 that hosts accept. */
const MAX_DESCRIPTION = 700;

export class MachineManual implements SkillSource {
  readonly name: string;
  readonly options: SkillSource['options'];
  readonly skills: readonly ServedSkill[];
  readonly #files = new Map<string, { readonly file: ServedFile; readonly bytes: Buffer }>();

  /**
   * @param tools the tools of the machine, as clients list them
   * @param server the name of the server, which begins the address
   */
  constructor(definition: AnyMachine, tools: readonly Tool[], server: string) {
    const { name, scopes = [], eventScopes = {}, allow } = definition;
    this.name = `the manual of machine "${name}"`;
    this.options = { scopes: [...scopes, ...(eventScopes.get ?? [])], allow, machine: { name, event: 'get' } };
    const skill = skillNameOf(name) ?? 'machine';
    const frontmatter = { name: skill, description: descriptionOf(definition, tools) };
    const chart = readChart(definition.machine);
    const root = `skill://${skillNameOf(server) ?? 'server'}/${skill}`;
    const put = (path: string, mimeType: string, text: string): void => {
      const bytes = Buffer.from(text);
      const file = { uri: `${root}/${path}`, name: path.slice(path.lastIndexOf('/') + 1), mimeType };
      const digest = `sha256:${sha256(bytes, 'hex')}`;
      this.#files.set(file.uri, { file: { ...file, digest, size: bytes.length }, bytes });
    };
    put(SKILL_FILE, 'text/markdown', new Manual(definition, tools, chart).text(frontmatter));
    put('references/chart.mmd', 'text/vnd.mermaid', toMermaid(chart));
    put('references/transitions.md', 'text/markdown', `# Transitions of ${name}\n\n${toTable(chart)}`);
    const files = [...this.#files.values()].map(({ file }) => file);
    const resources = files.map(({ uri, digest, size }) => ({ uri, digest, size }));
    this.skills = [{ entry: { uri: `${root}/${SKILL_FILE}`, frontmatter, resources }, files }];
  }

  read(uri: string): ResourceContents {
    const found = this.#files.get(uri);
    if (!found) throw new ProtocolError(ErrorCode.ResourceNotFound, 'Resource not found', { uri: uri.slice(0, 2_048) });
    return contentsOf(uri, found.file.mimeType, found.bytes);
  }

  /** A manual never changes: another definition of the machine has another. */
  onChange(): void {}

  close(): void {}
}

function descriptionOf({ name, description }: AnyMachine, tools: readonly Tool[]): string {
  const about = description === undefined ? '' : `${oneLine(description).slice(0, MAX_DESCRIPTION)} `;
  const create = tools[0]?.name ?? `${name}_create`;
  return `${about}Read it before you use ${create} and the other tools of ${oneLine(name)}: it has the states of an instance, and the calls that each state accepts.`;
}

/** The text of SKILL.md. */
class Manual {
  readonly #definition: AnyMachine;
  readonly #chart: ChartNode;
  readonly #tools: ReadonlyMap<string, Tool>;
  /** The addressees of the questions of each state, by its path. */
  readonly #questions: ReadonlyMap<string, readonly string[]>;

  constructor(definition: AnyMachine, tools: readonly Tool[], chart: ChartNode) {
    this.#definition = definition;
    this.#chart = chart;
    this.#tools = new Map(tools.map((tool) => [tool.name, tool]));
    this.#questions = questionsOf(definition.machine);
  }

  text(frontmatter: SkillEntry['frontmatter']): string {
    const { name, title = name, description } = this.#definition;
    const states = nodesOf(this.#chart).filter(({ path }) => path !== '');
    const ends = states
      .filter(({ type, path }) => type === 'final' && !path.includes('.'))
      .map(({ path }) => code(path));
    const begins = states.filter(({ initial, path }) => initial && !path.includes('.')).map(({ path }) => code(path));
    return [
      '---',
      ...Object.entries(frontmatter).map(([key, value]) => `${key}: ${quoted(String(value))}`),
      '---',
      '',
      `# ${oneLine(title)}`,
      '',
      ...(description === undefined ? [] : [description, '']),
      ...this.#use(),
      '',
      'If an instance asks something, the server asks the user itself: do not answer in their place.',
      '',
      `It begins in ${begins.join(' and ') || 'its only state'}${ends.length === 0 ? '' : ` and ends in ${ends.join(' or ')}`}. All transitions are in [a table](references/transitions.md) and [a diagram](references/chart.mmd).`,
      '',
      ...[this.#chart, ...states].flatMap((node) => this.#state(node)),
    ].join('\n');
  }

  /** Explains how to find an instance, and what to do with it. */
  #use(): readonly string[] {
    const { key, create = 'event' } = this.#definition;
    const next = 'The answer has the state, and in `accepts` the events that it accepts next: send no other.';
    if (key === undefined)
      return [
        `1. ${this.#call('create')} creates an instance and returns its handle. Keep it.`,
        `2. Pass the handle to each further call. ${next}`,
        `3. ${this.#call('get')} shows the state again, ${this.#call('list')} lists your instances, ${this.#call('end')} ends one for good.`,
      ];
    const named =
      typeof key === 'string' ? `There is one for each ${key}` : `The argument ${code(key.argument)} names it`;
    const begins = create === 'create' ? `${this.#call('create')} creates it` : 'its first event creates it';
    return [
      `1. ${named}; others may use it, too. If it is absent, ${begins}.`,
      `2. ${next}`,
      `3. ${this.#call('get')} shows the state again, ${this.#call('end')} ends it for good.`,
    ];
  }

  /** The section of a state; none for one in which nothing can happen. */
  #state(node: ChartNode): readonly string[] {
    const { path, type, description, invokes, edges } = node;
    const heading = path === '' ? 'In every state' : `In ${code(path)}`;
    const lines = [
      ...(description === undefined ? [] : [oneLine(description)]),
      ...(type === 'final'
        ? [path.includes('.') ? 'This part is done.' : 'The instance is done: it accepts no event.']
        : []),
      ...(this.#questions.get(path) ?? []).map((who) => `- The server asks ${who}.`),
      ...(invokes.length === 0 ? [] : [`- By itself: does ${invokes.map(code).join(', ')}.`]),
      ...edges.flatMap((edge) => this.#edge(node, edge)),
    ];
    return lines.length === 0 ? [] : [`## ${heading}`, '', ...lines, ''];
  }

  /** One line for each event that clients may send; an event of the machine itself is none of theirs. */
  #edge(node: ChartNode, edge: ChartEdge): readonly string[] {
    const types = Object.keys(this.#definition.events).filter((type) => isFor(edge, type));
    const condition = conditionOf(node, edge);
    const only = condition === undefined ? '' : `, ${conditionText(condition)}`;
    const target = edge.targets.length === 0 ? ' (the state stays)' : ` → ${edge.targets.map(code).join(', ')}`;
    const means = edge.description === undefined ? '' : `: ${oneLine(edge.description)}`;
    if (types.length > 0) return types.map((type) => `- ${this.#call(type)}${only}${target}${means}`);
    const own = edge.on === '' || edge.on.startsWith('xstate.');
    return own ? [`- By itself, ${oneLine(edge.label)}${only}${target}${means}`] : [];
  }

  /** A call of a tool as a model writes it. */
  #call(does: string): string {
    const { name, single = false, events } = this.#definition;
    const sends = single && Object.hasOwn(events, does);
    const tool = this.#tools.get(sends ? `${name}_send` : `${name}_${does}`);
    const { inputSchema = {} } = tool ?? {};
    const handle = isObject(inputSchema.properties) && 'handle' in inputSchema.properties ? ['handle'] : [];
    const args = [
      ...handle,
      ...(sends ? [`event: "${does}"`, ...this.#data(does)] : [signature({ json: inputSchema })]),
    ];
    return code(`${tool?.name ?? `${name}_${does}`}(${args.filter((arg) => arg !== '').join(', ')})`);
  }

  /** The data of an event of the tool that sends all events: its schema lists them by their titles. */
  #data(type: string): readonly string[] {
    const { properties } = this.#tools.get(`${this.#definition.name}_send`)?.inputSchema ?? {};
    const data = isObject(properties) && isObject(properties.data) ? properties.data.anyOf : undefined;
    const schema: unknown = Array.isArray(data)
      ? data.find((each) => isObject(each) && each.title === type)
      : undefined;
    const members = isJsonObject(schema)
      ? signature({ json: { properties: schema.properties, required: schema.required } })
      : '';
    return members === '' ? [] : [`data: { ${members} }`];
  }
}

/** Returns the addressees of the questions of each state, by its path. */
function questionsOf(machine: AnyStateMachine): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, readonly string[]>();
  const { actors } = machine.implementations;
  const visit = (node: AnyStateNode): void => {
    const asks = node.invoke.flatMap(({ src }) => askedBy(typeof src === 'string' ? actors[src] : src) ?? []);
    if (asks.length > 0) found.set(node.path.join('.'), asks);
    for (const child of Object.values(node.states)) visit(child);
  };
  visit(machine.root);
  return found;
}

function conditionText(condition: string): string {
  if (condition === 'otherwise') return condition;
  return condition === 'if' ? 'under a condition' : `only if ${code(condition)}`;
}

/** A scalar in single quotes: YAML changes nothing in it, and every reader of skills knows it. */
function quoted(text: string): string {
  return `'${oneLine(text).replaceAll("'", "''")}'`;
}

function code(text: string): string {
  return `\`${oneLine(text).replaceAll('`', "'")}\``;
}

function oneLine(text: string): string {
  return text
    .toWellFormed()
    .replace(/[\p{Cc}\p{Zl}\p{Zp}\uFEFF\s]+/gu, ' ')
    .trim();
}
