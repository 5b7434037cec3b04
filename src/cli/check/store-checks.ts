/** The rules of the directories that list MCP servers: what their reviewers look at first, as far as a listing and package.json show it. Pure. */

import { EVENTS_EXTENSION, settingsIn } from '../../core/protocol/extensions.ts';
import { isObject, type JsonObject } from '../../core/protocol/json.ts';
import type { ServerListing } from '../call/server-listing.ts';
import type { OnlineFacts } from './online-facts.ts';

/** A directory. */
export type Directory = 'openai' | 'claude' | 'registry';

export const DIRECTORIES: readonly Directory[] = ['openai', 'claude', 'registry'];

/** One thing to mend, or to look at. */
export interface StoreFinding {
  /** `error`: a reviewer rejects it. `warning`: look at it. */
  readonly level: 'error' | 'warning';
  readonly directory: Directory | 'all';
  /** The tool or the member of package.json. */
  readonly subject: string;
  readonly message: string;
}

export interface StoreFacts {
  readonly listing: ServerListing;
  /** The package.json of the program; undefined for a server elsewhere. */
  readonly project: JsonObject | undefined;
  /** The README beside it. */
  readonly readme: string | undefined;
  /** The address of the server, if it was reached over HTTP. */
  readonly url: URL | undefined;
  /** Absent without --online. */
  readonly online?: OnlineFacts | undefined;
}

const LONGEST_TOOL = 64;
const LONGEST_REGISTRY_NAME = 200;
const LONGEST_REGISTRY_DESCRIPTION = 100;
const LONGEST_DISPLAY_NAME = 30;
const REGISTRY_NAME = /^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/;
/** Texts in which a description speaks to the model about anything but the tool. */
const INSTRUCTION =
  /\b(?:you must|always (?:call|use)|never (?:call|use)|ignore (?:all|any|previous|other)|do not (?:tell|mention|use other)|before (?:any|every) other|instead of other)\b/i;
/** Members of annotations that say what a tool does. */
const HINTS = ['readOnlyHint', 'destructiveHint', 'openWorldHint'] as const;

/** @param chosen the directories; all if empty */
export function storeFindings(facts: StoreFacts, chosen: readonly Directory[]): readonly StoreFinding[] {
  const findings: StoreFinding[] = [];
  const isChosen = (directory: StoreFinding['directory']): boolean =>
    directory === 'all' || chosen.length === 0 || chosen.includes(directory);
  const add: Add = (level, directory, subject, message) => {
    if (isChosen(directory)) findings.push({ level, directory, subject, message });
  };
  if (facts.listing.tools.length === 0) add('error', 'all', 'tools', 'the server lists none');
  for (const tool of facts.listing.tools) checkTool(tool, add);
  checkViews(facts.listing, add);
  checkEvents(facts.listing, add);
  checkPlace(facts, add);
  if (facts.online) checkOnline(facts.online, add);
  if (facts.project) checkProject(facts.project, facts, add);
  return findings;
}

type Add = (
  level: StoreFinding['level'],
  directory: StoreFinding['directory'],
  subject: string,
  message: string,
) => void;

function checkTool({ name, title, description, annotations = {} }: ServerListing['tools'][number], add: Add): void {
  const subject = `tool ${name}`;
  if (name.length > LONGEST_TOOL)
    add('error', 'all', subject, `its name has ${name.length} characters; at most ${LONGEST_TOOL}`);
  if (title === undefined && annotations.title === undefined)
    add('error', 'all', subject, 'it has no title for people');
  if (description === undefined || description.trim() === '') add('error', 'all', subject, 'it has no description');
  else if (INSTRUCTION.test(description))
    add(
      'warning',
      'all',
      subject,
      'its description instructs the model. Reviewers reject that: say what the tool does',
    );
  const { readOnlyHint, destructiveHint } = annotations;
  for (const hint of HINTS) {
    // A tool that changes nothing destroys nothing.
    if (annotations[hint] !== undefined || (hint === 'destructiveHint' && readOnlyHint === true)) continue;
    add('error', hint === 'openWorldHint' ? 'openai' : 'all', subject, `annotations.${hint} is not set`);
  }
  if (readOnlyHint === true && destructiveHint === true)
    add('error', 'all', subject, 'annotations: it cannot be read-only and destructive');
  if (readOnlyHint === false && destructiveHint === false)
    add(
      'warning',
      'claude',
      subject,
      'it writes, and says destructiveHint: false. The reviewers of Claude want true for each write; by the protocol, false is right for a tool that only adds',
    );
}

/** The hosts of OpenAI load nothing that a view does not name, and reviewers want each view to say so itself. */
function checkViews({ resources }: ServerListing, add: Add): void {
  for (const { uri, mimeType = '', _meta: meta } of resources) {
    if (!uri.startsWith('ui://') && !mimeType.startsWith('text/html;profile=mcp-app')) continue;
    const ui = isObject(meta?.ui) ? meta.ui : {};
    if (isObject(ui.csp) || isObject(meta?.['openai/widgetCSP'])) continue;
    add(
      'error',
      'openai',
      `view ${uri}`,
      'it declares no content security policy. Set the option csp of the app: csp: {} for a view that loads nothing from elsewhere',
    );
  }
}

/** Clients of OpenAI read the older place, and those of SEP-3415 the extension. */
function checkEvents({ capabilities }: ServerListing, add: Add): void {
  const { events, extensions } = capabilities;
  const isDraft = settingsIn(extensions, EVENTS_EXTENSION) !== undefined;
  if (isObject(events) === isDraft) return;
  const missing = isDraft ? 'capabilities.events' : `capabilities.extensions["${EVENTS_EXTENSION}"]`;
  add('error', 'openai', 'events', `${missing} is not declared: some clients see no events`);
}

function checkOnline({ published, challenge }: OnlineFacts, add: Add): void {
  if (published === 'no')
    add('error', 'registry', 'package.json', 'npm does not have this version: publish it before it is listed');
  if (challenge === 'no')
    add(
      'error',
      'openai',
      'address',
      'the domain serves no token at /.well-known/openai-apps-challenge: OpenAI shows it when it verifies the domain',
    );
  if (isObject(published)) add('warning', 'registry', 'package.json', `its version at npm: ${published.unknown}`);
  if (isObject(challenge)) add('warning', 'openai', 'address', `the challenge of the domain: ${challenge.unknown}`);
}

function checkPlace({ listing, url }: StoreFacts, add: Add): void {
  const { title, name } = listing.server;
  const shown = title ?? name;
  if (shown.length > LONGEST_DISPLAY_NAME)
    add('error', 'openai', 'server', `its title has ${shown.length} characters; at most ${LONGEST_DISPLAY_NAME}`);
  if (url && url.protocol !== 'https:')
    add('error', 'openai', 'address', `expected https, got ${url.protocol.slice(0, -1)}`);
  if (!url) add('warning', 'openai', 'address', 'apps need a public https endpoint: check that address, too');
}

function checkProject(project: JsonObject, { readme }: StoreFacts, add: Add): void {
  const { mcpName, description, version, mcpb, name } = project;
  if (typeof version !== 'string') add('error', 'all', 'package.json', 'version: expected one, got none');
  if (typeof mcpName !== 'string' || !REGISTRY_NAME.test(mcpName) || mcpName.length > LONGEST_REGISTRY_NAME)
    add(
      'error',
      'registry',
      'package.json',
      'mcpName: expected the name in the registry, such as "io.github.ada/shop"',
    );
  if (typeof description !== 'string' || description === '')
    add('error', 'all', 'package.json', 'description: expected a text, got none');
  else if (description.length > LONGEST_REGISTRY_DESCRIPTION)
    add(
      'error',
      'registry',
      'package.json',
      `description: it has ${description.length} characters; at most ${LONGEST_REGISTRY_DESCRIPTION}`,
    );
  if (project.private === true)
    add(
      'warning',
      'registry',
      'package.json',
      `private: npm does not publish ${String(name)}; list an archive of troupe pack instead`,
    );
  const policies = isObject(mcpb) ? mcpb.privacy_policies : undefined;
  const isListed =
    Array.isArray(policies) && policies.length > 0 && policies.every((each) => String(each).startsWith('https://'));
  if (!isListed)
    add('error', 'claude', 'package.json', 'mcpb.privacy_policies: expected the https address of the privacy policy');
  if (readme === undefined || !/privacy/i.test(readme))
    add('error', 'claude', 'README', 'it does not mention a privacy policy');
  if (typeof project.homepage !== 'string' || !project.homepage.startsWith('https://'))
    add('warning', 'all', 'package.json', 'homepage: expected an https address, where users find support');
}
