/** The view of one instance of a machine: it shows the instance, and offers exactly the events that the instance accepts. */
import type { MachinePage } from '../../../src/features/apps/view-definition.ts';
import { button, element, fill, section } from '../parts/dom.ts';
import { valueElement } from '../parts/values.ts';
import { label, reasonOf } from '../parts/words.ts';
import type { Connection } from '../view/connection.ts';
import type { Members } from '../view/host-link.ts';
import type { ToolResult } from '../view/server-proxy.ts';
import { actionsPart } from './actions.ts';
import { chartPart } from './chart.ts';
import { type Instance, isInstance, msOf, pathsIn } from './instance.ts';
import { questionsPart } from './questions.ts';
import { timersPart } from './timers.ts';

/** Characters of a sentence for the model. */
const MAX_SENTENCE = 500;

/** @param say says a sentence to readers of the screen */
export function machineView(view: Connection, definition: MachinePage, say: (sentence: string) => void): HTMLElement {
  const {
    title,
    machine,
    chart: { states },
    events,
    answer,
    get,
  } = definition;
  let instance: Instance | undefined;
  let isWatched = false;
  let dataText: string | undefined;

  const state = element('p', { class: 'state', tabindex: -1 }, 'Waiting');
  const note = section('Note');
  const data = section('Data');
  const chart = chartPart(states, document.querySelector('svg'));
  const timers = timersPart();
  const actions = actionsPart(events, ({ tool, fixed }, values) =>
    act(tool, { handle: instance?.handle, ...fixed, ...values }),
  );
  const questions = questionsPart(
    view,
    (id, action, content) => act(answer, { id: uri(), answers: { [id]: { action, content } } }),
    say,
  );
  const article = element(
    'article',
    {},
    element('header', {}, element('h1', {}, title), state),
    note,
    element(
      'div',
      { class: 'columns' },
      chart.element,
      element('div', {}, questions.element, timers.element, data, actions.element),
    ),
  );

  view.on('result', open);
  view.on('cancelled', (reason) => tell(`Cancelled. ${reason}`));
  view.on('host', () => instance && draw(instance));
  return article;

  function uri(): string {
    return definition.uri.replace('{handle}', instance?.handle ?? '');
  }

  /** Shows the result that opened the view. A host may send it days later, so that the watch begins without a version. */
  function open(result: ToolResult): void {
    const { structuredContent: opened } = result;
    if (!isInstance(opened)) return tell(textOf(result));
    apply(opened);
    if (msOf(opened.expires) < Date.now()) tell('This is an earlier state.');
    if (!isWatched) void watch();
  }

  async function watch(): Promise<void> {
    isWatched = true;
    try {
      for await (const value of view.watch(uri())) {
        if (!isInstance(value)) continue;
        note.hidden = true;
        apply(value);
        // Nothing changes after an end.
        if (value.status !== 'active') break;
      }
    } catch (error) {
      tell(reasonOf(error), true);
    }
    isWatched = false;
  }

  /** Asks for the instance by its tool, which may ask its open questions again: the last resort. */
  async function refresh(): Promise<void> {
    try {
      const result = await view.call(get, { handle: instance?.handle });
      if (isInstance(result.structuredContent)) return apply(result.structuredContent);
      tell(textOf(result));
      if (instance) apply({ ...instance, status: 'expired' });
    } catch (error) {
      tell(reasonOf(error), true);
    }
  }

  /** Calls a tool for the person, and gives the model a sentence about it. @returns the reason why the call failed */
  async function act(tool: string, args: Members): Promise<string | undefined> {
    const result = await view.call(tool, args);
    if (result.isError) return textOf(result);
    if (isInstance(result.structuredContent)) apply(result.structuredContent);
    const sentence = `${machine} ${instance?.handle}: ${state.textContent}, by the user in the view`;
    // The next answer of the server has it, too: many hosts do not offer this.
    const content = [{ type: 'text', text: sentence.slice(0, MAX_SENTENCE) }];
    view.ask('ui/update-model-context', { content }).catch(() => {});
    return undefined;
  }

  function apply(next: Instance): void {
    if (instance?.handle === next.handle && next.version < instance.version) return;
    instance = next;
    const before = state.textContent;
    // Its delays are counted from now: the time of the server is older when it is drawn again.
    timers.show(next);
    draw(next);
    if (state.textContent !== before) say(`${title}: ${state.textContent}`);
  }

  function draw(shown: Instance): void {
    const { status, accepts, asks = [], output, failure, now } = shown;
    const isActive = status === 'active';
    const isFocused = article.contains(document.activeElement);
    const paths = pathsIn(shown.state);
    fill(
      state,
      ...paths.map((path) => element('strong', {}, states.find((each) => each.path === path)?.label ?? path)),
      !isActive && element('span', { class: status }, label(status)),
    );
    chart.show(paths);
    // The results of tools name questions without their fields.
    if (now !== undefined || asks.length === 0 || !isActive) questions.show(isActive ? asks : []);
    showData([failure === undefined ? output : { failure }, shown.view]);
    actions.show(({ name, always }) => isActive && (always || accepts.includes(name)));
    // The focus was on a button that is not there any more.
    if (isFocused && !document.activeElement?.getClientRects().length) state.focus();
  }

  /** Shows the data, unless it is the same: the reader may be in the middle of it. */
  function showData(values: readonly unknown[]): void {
    const text = JSON.stringify([values, view.host.locale]);
    if (text === dataText) return;
    dataText = text;
    const shown = values.filter((value) => value !== undefined);
    fill(data, ...shown.map((value) => valueElement(value, view.host)));
    data.hidden = shown.length === 0;
  }

  function tell(sentence: string, isRefreshable = false): void {
    fill(note, sentence, isRefreshable && button('Refresh', () => void refresh()));
    note.hidden = false;
    say(sentence);
  }
}

function textOf({ content }: ToolResult): string {
  return String(content.find(({ text }) => typeof text === 'string')?.text ?? '');
}
