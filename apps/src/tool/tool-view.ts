/** The view of a tool: its arguments as a form, which fills while a model writes them, its running time, and its result. */
import type { ToolPage } from '../../../src/features/apps/view-definition.ts';
import { element, fill, quiet, section } from '../parts/dom.ts';
import { formPart } from '../parts/form.ts';
import { duration, word } from '../parts/words.ts';
import type { Connection } from '../view/connection.ts';
import { type Members, membersOf } from '../view/host-link.ts';
import type { ToolResult } from '../view/server-proxy.ts';
import { resultElement } from './result.ts';

/** Characters of a sentence for the model. */
const MAX_SENTENCE = 500;
const EVERY_MS = 1_000;

export function toolView(view: Connection, definition: ToolPage, say: (sentence: string) => void): HTMLElement {
  const { tool, title, description, fields, output } = definition;
  const arguments_ = element('div');
  const running = section('running');
  const shown = section('result');
  let ticking: ReturnType<typeof setInterval> | undefined;
  let isTouched = false;
  let last: ToolResult | undefined;
  arguments_.addEventListener('input', () => {
    isTouched = true;
  });

  view.on('partial', write);
  view.on('input', (input) => {
    write(input);
    run();
  });
  view.on('result', show);
  view.on('cancelled', () => {
    stop();
    fill(shown, quiet(word('cancelled')));
    shown.hidden = false;
    say(word('cancelled'));
  });
  view.on('host', () => last && draw(last));
  write({});
  return element(
    'article',
    {},
    element('header', {}, element('h1', {}, title)),
    quiet(description?.split('\n')[0]),
    arguments_,
    running,
    shown,
  );

  /** Enters the arguments of the model, until a person enters others. */
  function write(input: Members): void {
    if (isTouched) return;
    const form = formPart(fields, word('rerun'), again, undefined, input);
    const controls = () => [...arguments_.querySelectorAll<HTMLElement>('input, select, textarea, button')];
    const active = document.activeElement;
    const at = active instanceof HTMLElement ? controls().indexOf(active) : -1;
    fill(arguments_, form.element);
    // The forms of one tool have the same controls: the focus stays where it was.
    controls()[at]?.focus();
  }

  /** Runs the tool for the person, and gives the model the beginning of the result. */
  async function again(values: Members): Promise<string | undefined> {
    run();
    try {
      const result = await view.call(tool, values);
      show(result);
      const text = result.content.map((block) => block.text ?? '').join(' ');
      const sentence = `${tool}, run again by the user in the view: ${text}`.slice(0, MAX_SENTENCE);
      view.ask('ui/update-model-context', { content: [{ type: 'text', text: sentence }] }).catch(() => {});
    } finally {
      stop();
    }
    // The values stay, for the next run.
    return '';
  }

  /** Shows that the tool runs, and for how long. */
  function run(): void {
    const began = Date.now();
    const time = element('span');
    const tick = (): void => {
      time.textContent = duration((Date.now() - began) / 1000);
    };
    stop();
    fill(
      running,
      element('div', { class: 'timer' }, word('running'), element('progress', { 'aria-label': word('running') }), time),
    );
    running.hidden = false;
    tick();
    ticking = setInterval(tick, EVERY_MS);
  }

  function stop(): void {
    clearInterval(ticking);
    running.hidden = true;
  }

  function show(result: ToolResult): void {
    stop();
    // Hosts that show an old conversation again send results with nothing in them.
    if (last && isEmpty(result)) return;
    last = result;
    draw(result);
    say(word(result.isError ? 'notDone' : 'finished'));
  }

  /** Also in another language. */
  function draw(result: ToolResult): void {
    fill(shown, resultElement(result, output, view));
    shown.hidden = false;
  }
}

function isEmpty({ content, structuredContent, isError }: ToolResult): boolean {
  return (
    !isError &&
    Object.keys(membersOf(structuredContent)).length === 0 &&
    content.every(({ type, text }) => type === 'text' && (text === '' || text === '{}'))
  );
}
