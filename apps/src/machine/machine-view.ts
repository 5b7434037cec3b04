/** The view of one instance of a machine: it shows the instance, and offers exactly the events that the instance accepts. */
import type { MachinePage } from '../../../src/features/apps/view-definition.ts';
import { button, element, fill, section } from '../parts/dom.ts';
import { valueElement } from '../parts/values.ts';
import { isNotOffered, labelled, nameOf, reasonOf, refusalOf, useTexts, word } from '../parts/words.ts';
import type { Connection } from '../view/connection.ts';
import { isMembers, type Members, ViewError } from '../view/host-link.ts';
import { isGone, type ToolResult } from '../view/server-proxy.ts';
import { actionsPart } from './actions.ts';
import { chartPart } from './chart.ts';
import { type Instance, instanceIn, isInstance, msOf, pathsIn } from './instance.ts';
import { questionsPart } from './questions.ts';
import { timersPart } from './timers.ts';

/** Milliseconds after which a person learns that the host has sent nothing to show. */
const LATE_MS = 15_000;
/** Characters of a sentence for the model. */
const MAX_SENTENCE = 500;

/** @param say says a sentence to readers of the screen */
export function machineView(view: Connection, definition: MachinePage, say: (sentence: string) => void): HTMLElement {
  const { machine, states, events, answer, get, address } = definition;
  const title = useTexts(definition.texts, definition.translations, view.host.locale) ?? definition.title;
  document.title = title;
  let instance: Instance | undefined;
  /** The handle in the arguments of the call that opened the view. */
  let named: unknown;
  let isWatched = false;
  let wasWatched = false;
  let dataText: string | undefined;

  const state = element('p', { class: 'state', tabindex: -1 }, word('waiting'));
  const note = section('note');
  const data = section('data');
  const drawn = document.querySelector('svg');
  const chart = chartPart(states, drawn, new Map(events.map(({ name, title: own }) => [name, own])));
  const timers = timersPart();
  const actions = actionsPart(events, ({ tool, fixed }, values) => act(tool, { ...addressed(), ...fixed, ...values }));
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
  new ResizeObserver(() => chart.fit(article.clientWidth)).observe(article);

  view.on('input', (args) => {
    named = args[address];
  });
  view.on('result', open);
  setTimeout(() => !instance && note.hidden && tell(word('notSent')), LATE_MS);
  view.on('cancelled', () => tell(word('cancelled')));
  view.on('host', () => instance && draw(instance));
  return article;

  function uri(): string {
    return definition.uri.replace('{handle}', () => encodeURIComponent(instance?.handle ?? String(named)));
  }

  function addressed(): Members {
    return address === '' ? {} : { [address]: instance?.handle };
  }

  /**
   * Shows the result that opened the view. A host may send it days later, so that the watch begins without a version, and with
   * nothing in it: then the handle in the arguments shows the same. It may also send the results of other calls.
   */
  function open(result: ToolResult): void {
    const opened = instanceIn(result);
    if (instance && opened?.handle !== instance.handle) return;
    if (opened) apply(opened);
    else if (result.isError || typeof named !== 'string') return tell(word(result.isError ? 'notOpened' : 'notSent'));
    if (opened && msOf(opened.expires) < Date.now()) tell(word('earlier'));
    if (!isWatched) void watch();
  }

  async function watch(): Promise<void> {
    isWatched = true;
    try {
      for await (const value of view.watch(uri(), { onLost: showLoss })) {
        if (!isInstance(value)) continue;
        wasWatched = true;
        note.hidden = true;
        apply(value);
        // Nothing changes after an end.
        if (value.status !== 'active') break;
      }
    } catch (error) {
      if (error instanceof ViewError && error.reason === 'gone') showGone();
      else tell(wasWatched ? word('lost') : reasonOf(error), true);
    }
    isWatched = false;
  }

  /** Shows at once that the server does not answer. The watch continues, and the button does not wait for it. */
  function showLoss(error?: ViewError): void {
    if (error) tell(word('lost'), true);
    else note.hidden = true;
  }

  function showGone(): void {
    if (instance) apply({ ...instance, status: 'expired' });
    tell(word('gone'), true);
  }

  /**
   * Asks for the instance again. A host that offers neither the watch nor reads may offer the tool, which is the last resort: it
   * may ask the open questions again.
   */
  async function again(): Promise<void> {
    try {
      const result = await (wasWatched ? view.call(definition.watch, { uri: uri() }) : view.call(get, addressed()));
      const found = instanceIn(result);
      if (isGone(result)) return showGone();
      if (!found) return tell(refusalOf(result), true);
      note.hidden = true;
      apply(found);
      if (!isWatched && found.status === 'active') void watch();
    } catch (error) {
      tell(reasonOf(error), true);
    }
  }

  /** Calls a tool for the person, and gives the model a sentence about it. @returns the reason why the call failed */
  async function act(tool: string, args: Members): Promise<string | undefined> {
    let result: ToolResult;
    try {
      result = await view.call(tool, args);
    } catch (error) {
      // The server may have got the call, or not.
      if (!isNotOffered(error)) tell(word('lost'), true);
      return reasonOf(error);
    }
    const found = instanceIn(result);
    if (result.isError && !found) return refusalOf(result);
    if (found) apply(found);
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
    const { status, accepts, asks = [], blocked = [], now } = shown;
    const isActive = status === 'active';
    const isFocused = article.contains(document.activeElement);
    const paths = isActive || status === 'done' ? pathsIn(shown.state) : [];
    // The name of the last state is the outcome. Without one, the status is.
    fill(
      state,
      ...paths.map((path) => element('strong', {}, nameOf('states', path))),
      paths.length === 0 && element('strong', { class: status }, word(isStatus(status) ? status : 'done')),
    );
    state.classList.toggle('over', !isActive);
    chart.show(paths);
    // The results of tools name questions without their fields.
    if (now !== undefined || asks.length === 0 || !isActive)
      questions.show({ questions: isActive ? asks : [], data: shown.view });
    showData(outcomeOf(shown));
    actions.show(({ name, always }) => {
      const guard = blocked.find(({ event }) => event === name)?.guard;
      if (isActive && guard !== undefined) return { off: labelled('reasons', guard) ?? word('notNow') };
      return isActive && (always || accepts.includes(name)) ? 'on' : 'none';
    });
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
    fill(note, element('p', {}, sentence), isRefreshable && button(word('again'), () => void again()));
    note.hidden = false;
    say(sentence);
  }
}

const ENDS = ['done', 'failed', 'ended', 'expired'] as const;

function isStatus(status: string): status is (typeof ENDS)[number] {
  return ENDS.some((each) => each === status);
}

/** The data of an instance: its output and what its author shows, each member once. The reason of a failure is for developers. */
function outcomeOf({ output, view }: Instance): readonly unknown[] {
  if (!isMembers(output) || !isMembers(view)) return [output, view];
  const other = Object.entries(view).filter(([name, value]) => JSON.stringify(output[name]) !== JSON.stringify(value));
  return [output, other.length === 0 ? undefined : Object.fromEntries(other)];
}
