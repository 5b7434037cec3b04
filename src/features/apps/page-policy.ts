/** Puts a policy into a page, on top of that of the host: some hosts let pages reach origins that were not declared. */
import type { DefaultTreeAdapterTypes } from 'parse5';
import { sha256 } from '../../core/kernel/sha256.ts';
import type { AppOrigins } from './app-options.ts';

type Node = DefaultTreeAdapterTypes.Node;
type Element = DefaultTreeAdapterTypes.Element;

/** The parts of a page that decide about its policy, as a browser finds them: text that only looks like markup is none. */
interface Outline {
  readonly head: Element | undefined;
  readonly scripts: readonly Element[];
  /** The end of the tags that may precede the policy. */
  readonly beginning: number;
}

/**
 * Some hosts put the page into the body of one of theirs, where a browser ignores a policy (HTML, "Pragma directives"). Moved to
 * the head, the policy holds from then on, and no script of the page has run before.
 */
const KEEPER = '{const p=document.currentScript.previousSibling;p.parentNode===document.head||document.head.append(p)}';

/**
 * Returns the page with a policy: it runs the scripts that are in its text, by their hashes, and uses the origins that its
 * author declares. A page whose head contains a policy stays as it is.
 *
 * @param text a page, with line feeds only: browsers hash a script after they have replaced carriage returns
 */
export async function withPolicy(text: string, origins: AppOrigins = {}): Promise<string> {
  const { head, scripts, beginning } = await outlineOf(text);
  if (head?.childNodes.some(isPolicy)) return text;
  const policy = policyOf(scripts, origins);
  return `${text.slice(0, beginning)}<meta http-equiv="Content-Security-Policy" content="${policy}"><script>${KEEPER}</script>${text.slice(beginning)}`;
}

async function outlineOf(text: string): Promise<Outline> {
  const { parse } = await import('parse5');
  // Views run scripts, and then the content of `noscript` is text.
  const page = parse(text, { sourceCodeLocationInfo: true, scriptingEnabled: true });
  const html = page.childNodes.find(isNamed('html'));
  const head = html?.childNodes.find(isNamed('head'));
  const doctype = page.childNodes.find(({ nodeName }) => nodeName === '#documentType');
  // A browser adds the tags that are not in the text where the policy stands.
  const ends = [doctype?.sourceCodeLocation, html?.sourceCodeLocation?.startTag, head?.sourceCodeLocation?.startTag];
  return { head, scripts: scriptsIn(page), beginning: Math.max(0, ...ends.map((at) => at?.endOffset ?? 0)) };
}

/** The scripts of a page, with those of its templates: a script of the page may insert them. */
function scriptsIn(page: Node): readonly Element[] {
  const scripts: Element[] = [];
  const waiting = [page];
  for (let node = waiting.pop(); node; node = waiting.pop()) {
    if (isNamed('script')(node)) scripts.push(node);
    if ('content' in node) waiting.push(node.content);
    if ('childNodes' in node) for (const child of node.childNodes.toReversed()) waiting.push(child);
  }
  return scripts;
}

function isNamed(name: string): (node: Node) => node is Element {
  return (node): node is Element => 'tagName' in node && node.tagName === name;
}

/** True for a policy that browsers obey: elsewhere than in the head, or without content, they ignore it (HTML, "Pragma directives"). */
function isPolicy(node: Node): boolean {
  return (
    isNamed('meta')(node) &&
    attributeOf(node, 'http-equiv')?.toLowerCase() === 'content-security-policy' &&
    Boolean(attributeOf(node, 'content'))
  );
}

function attributeOf({ attrs }: Element, name: string): string | undefined {
  return attrs.find((each) => each.name === name)?.value;
}

function policyOf(scripts: readonly Element[], origins: AppOrigins): string {
  const { connectDomains = [], resourceDomains = [], frameDomains = [], baseUriDomains = [] } = origins;
  const hashes = new Set(
    scripts.filter((script) => attributeOf(script, 'src') === undefined).map((script) => hashOf(textOf(script))),
  );
  const from = (directive: string, ...sources: readonly string[]): string =>
    `${directive} ${sources.length === 0 ? "'none'" : sources.join(' ')}`;
  return [
    "default-src 'none'",
    from('script-src', ...hashes, hashOf(KEEPER), ...resourceDomains),
    from('style-src', "'unsafe-inline'", ...resourceDomains),
    from('img-src', 'data:', 'blob:', ...resourceDomains),
    from('font-src', 'data:', ...resourceDomains),
    from('media-src', 'data:', 'blob:', ...resourceDomains),
    from('connect-src', ...connectDomains),
    from('frame-src', ...frameDomains),
    from('base-uri', ...baseUriDomains),
    "form-action 'none'",
    "object-src 'none'",
  ].join('; ');
}

function hashOf(script: string): string {
  return `'sha256-${sha256(script, 'base64')}'`;
}

function textOf(script: Element): string {
  return script.childNodes.map((child) => ('value' in child ? child.value : '')).join('');
}
