/** A chat client for authors: the tools that open views, the view in a frame, and the messages between the view and its host. */
import { useSignal } from '@preact/signals';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Plain } from '../../../../src/inspector/frames.ts';
import { isList, isRecord, member, textOfValue } from '../../../../src/inspector/model/plain-values.ts';
import { Json } from '../../parts/Json.tsx';
import { Section } from '../../parts/parts.tsx';
import { ask } from '../../store/api.ts';
import { known, say } from '../../store/state.ts';
import { CallerChoice } from '../CallerChoice.tsx';
import { caller, mayCall } from '../calls.ts';
import { Form, valuesOf } from '../Form.tsx';
import type { Values } from '../fields.ts';
import { type HostMessage, passOn, SimulatedHost, textsOf } from './host.ts';
import { PRESETS, type Preset } from './presets.ts';
import './apps.css';

const WIDTHS = [320, 720, 1128];
const LOCALES = ['en-US', 'de-CH', 'ar-EG'];
const ZONES = ['UTC', 'Europe/Zurich', 'America/New_York'];

/** A tool that opens a view. */
interface Opener {
  readonly name: string;
  readonly title: string;
  readonly schema: Plain;
  readonly uri: string;
}

interface Opened {
  readonly opener: Opener;
  readonly html: string;
  readonly origin: string;
  /** The origins that the page declares. */
  readonly query: string;
  readonly input: Values;
  readonly result: { readonly [name: string]: Plain };
}

interface Switches {
  readonly preset: Preset;
  readonly theme: 'light' | 'dark';
  readonly width: number;
  readonly locale: string;
  readonly timeZone: string;
}

export function AppsPage() {
  const [openers, listed] = useOpeners();
  const [name, setName] = useState('');
  const [values, setValues] = useState<Values>({});
  const [invalid, setInvalid] = useState<string | undefined>(undefined);
  const [opened, setOpened] = useState<Opened | undefined>(undefined);
  const opener = openers?.find((each) => each.name === name) ?? openers?.[0];
  useEffect(() => {
    if (opener) setValues(valuesOf(opener.schema));
  }, [opener?.name]);
  // A page that is saved has another address: the view is shown again with the same call.
  useEffect(() => {
    const same = opened && openers?.find((each) => each.name === opened.opener.name);
    if (same && same.uri !== opened.opener.uri)
      void read(same).then((page) => setOpened({ ...opened, ...page, opener: same }), fail);
  }, [openers]);
  if (!mayCall())
    return (
      <p class="note quiet">
        Start the server with <code>--inspect-control</code> to open its views here.
      </p>
    );
  const open = async (): Promise<void> => {
    if (!opener) return;
    try {
      const page = await read(opener);
      const answer = await passOn('tools/call', { name: opener.name, arguments: values }, caller.value);
      if ('error' in answer) return say(String(answer.error.message));
      setOpened({ opener, ...page, input: values, result: answer.result });
    } catch (error) {
      fail(error);
    }
  };
  return (
    <article class="what offer-page">
      <header class="offer-head">
        <div>
          <p class="kind">simulated</p>
          <h2>Apps in a chat client</h2>
        </div>
      </header>
      {openers?.length === 0 ? <p class="beside">No tool opens a view.</p> : null}
      {opener ? (
        <form
          class="form apps-call"
          onSubmit={(event) => {
            event.preventDefault();
            void open();
          }}
        >
          <label class="form-field">
            <span class="form-name">tool</span>
            <select value={opener.name} onChange={({ currentTarget }) => setName(currentTarget.value)}>
              {openers?.map((each) => (
                <option key={each.name} value={each.name}>
                  {each.name}
                </option>
              ))}
            </select>
          </label>
          <Form key={opener.name} schema={opener.schema} values={values} onValues={setValues} onInvalid={setInvalid} />
          {invalid === undefined ? null : (
            <p class="bad" role="alert">
              {invalid}
            </p>
          )}
          <p class="buttons">
            <button type="submit" class="primary" disabled={invalid !== undefined}>
              Call, and open the view
            </button>
          </p>
          <CallerChoice />
        </form>
      ) : null}
      {opened ? <Stage opened={opened} listed={listed} /> : null}
    </article>
  );
}

function fail(error: unknown): void {
  say(error instanceof Error ? error.message : String(error));
}

/** The tools that open views, as a client that shows views gets them; again when the catalogue changes. */
function useOpeners(): readonly [readonly Opener[] | undefined, ReadonlySet<string>] {
  const [tools, setTools] = useState<readonly Plain[] | undefined>(undefined);
  const version = known().catalogue?.version;
  useEffect(() => {
    if (!mayCall()) return;
    passOn('tools/list', {}, caller.value).then((answer) => {
      if ('error' in answer) return say(String(answer.error.message));
      const { tools: found = [] } = answer.result;
      setTools(isList(found) ? found : []);
    }, fail);
  }, [version, caller.value]);
  return useMemo(() => {
    const openers = tools?.flatMap((tool): readonly Opener[] => {
      const uri = textOfValue(member(tool, '_meta', 'ui', 'resourceUri'));
      const name = textOfValue(member(tool, 'name')) ?? '';
      const title = textOfValue(member(tool, 'title')) ?? name;
      return uri === undefined ? [] : [{ name, title, uri, schema: member(tool, 'inputSchema') ?? {} }];
    });
    return [openers, new Set((tools ?? []).map((tool) => textOfValue(member(tool, 'name')) ?? ''))];
  }, [tools]);
}

/** Reads the page of a view. @throws {Error} if the server has none */
async function read({ uri }: Opener): Promise<Pick<Opened, 'html' | 'origin' | 'query'>> {
  const response = await ask('api/frames');
  const { origin }: { origin: string | null } = await response.json();
  const answer = await passOn('resources/read', { uri }, caller.value);
  if ('error' in answer) throw new Error(`${uri}: ${String(answer.error.message)}`);
  const { contents = [] } = answer.result;
  const [first] = isList(contents) ? contents : [];
  const html = textOfValue(member(first, 'text'));
  if (html === undefined || origin === null) throw new Error(`${uri}: it has no text`);
  const csp = member(first, '_meta', 'ui', 'csp');
  const query = new URLSearchParams();
  for (const [name, origins] of isRecord(csp) ? Object.entries(csp) : [])
    for (const each of isList(origins) ? origins : []) query.append(name, String(each));
  return { html, origin, query: query.toString() };
}

function Stage({ opened, listed }: { readonly opened: Opened; readonly listed: ReadonlySet<string> }) {
  const [switches, setSwitches] = useState<Switches>({
    preset: PRESETS[0] as Preset,
    theme: 'light',
    width: 720,
    locale: 'en-US',
    timeZone: 'UTC',
  });
  const { preset, theme, width, locale, timeZone } = switches;
  const frame = useRef<HTMLIFrameElement>(null);
  const host = useSignal<SimulatedHost | undefined>(undefined);
  const context = {
    theme,
    locale,
    timeZone,
    displayMode: host.value?.mode.value ?? 'inline',
    availableDisplayModes: preset.modes,
    containerDimensions:
      preset.height === undefined ? { width, maxHeight: preset.maxHeight ?? 5_000 } : { width, height: preset.height },
    toolInfo: { tool: { name: opened.opener.name, inputSchema: opened.opener.schema } },
  } as { readonly [name: string]: Plain };
  const options = { preset, caller: caller.value, context, listed };
  // Another host, page or call is another frame: hosts never use one again.
  useEffect(() => {
    if (!frame.current) return;
    const made = new SimulatedHost(frame.current, opened.origin, opened.html, options);
    made.open('ui/notifications/tool-input', { arguments: opened.input });
    made.open('ui/notifications/tool-result', opened.result);
    host.value = made;
    frame.current.src = `${opened.origin}/?${opened.query}`;
    return () => made.close();
  }, [opened, preset]);
  useEffect(() => {
    if (!host.value) return;
    host.value.options = options;
    host.value.change(context);
  }, [theme, width, locale, timeZone, host.value?.mode.value]);
  const set = (change: Partial<Switches>): void => setSwitches({ ...switches, ...change });
  const height = preset.height ?? Math.min(preset.maxHeight ?? 5_000, Math.max(40, host.value?.height.value ?? 0));
  return (
    <>
      <div class="apps-switches">
        <Choice
          label="host"
          value={preset.name}
          all={PRESETS.map((each) => each.name)}
          onChoose={(name) => set({ preset: PRESETS.find((each) => each.name === name) ?? preset })}
        />
        <Choice
          label="theme"
          value={theme}
          all={['light', 'dark']}
          onChoose={(next) => set({ theme: next === 'dark' ? 'dark' : 'light' })}
        />
        <Choice
          label="width"
          value={String(width)}
          all={WIDTHS.map(String)}
          onChoose={(next) => set({ width: Number(next) })}
        />
        <Choice label="language" value={locale} all={LOCALES} onChoose={(next) => set({ locale: next })} />
        <Choice label="time zone" value={timeZone} all={ZONES} onChoose={(next) => set({ timeZone: next })} />
      </div>
      <div class={`apps-frame ${theme}`}>
        <iframe
          key={`${preset.name} ${opened.opener.uri}`}
          ref={frame}
          title={`View of ${opened.opener.title}`}
          width={width}
          height={height}
        />
      </div>
      <Section title="Model context" beside="as the view sent it last">
        {host.value?.modelContext.value === undefined ? (
          <p class="beside">None.</p>
        ) : (
          <Json value={host.value.modelContext.value} open={4} />
        )}
      </Section>
      <Section title="A host without views shows">
        {textsOf(opened.result).map((text, index) => (
          <pre class="apps-text" key={index}>
            {text}
          </pre>
        ))}
      </Section>
      <Messages messages={host.value?.messages.value ?? []} />
    </>
  );
}

interface ChoiceProps {
  readonly label: string;
  readonly value: string;
  readonly all: readonly string[];
  readonly onChoose: (value: string) => void;
}

function Choice({ label, value, all, onChoose }: ChoiceProps) {
  return (
    <label>
      {label}
      <select value={value} onChange={({ currentTarget }) => onChoose(currentTarget.value)}>
        {all.map((each) => (
          <option key={each} value={each}>
            {each}
          </option>
        ))}
      </select>
    </label>
  );
}

/** The messages in two lanes: those of the host begin at the left, those of the view at the right. */
function Messages({ messages }: { readonly messages: readonly HostMessage[] }) {
  return (
    <Section title="Messages" beside={String(messages.length)}>
      <ol class="apps-messages" aria-label="messages between host and view">
        {messages.map(({ id, from, method, kind, body }) => (
          <li key={id} class={`from-${from} ${kind}`}>
            <details>
              <summary>
                <span class="beside">{from === 'host' ? 'host →' : '← view'}</span> <span class="mono">{method}</span>
                {kind === 'answer' || kind === 'refusal' ? <span class="badge">{kind}</span> : null}
              </summary>
              <Json value={body} open={2} />
            </details>
          </li>
        ))}
      </ol>
    </Section>
  );
}
