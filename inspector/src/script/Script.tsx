/** The run of a script: its text with the calls of each line, the calls in the order of its journal, its logs and its journal, at the cursor. */
import { useEffect } from 'preact/hooks';
import type { Plain } from '../../../src/inspector/frames.ts';
import {
  type ActorLine,
  displayName,
  givenLine,
  isList,
  type LaneCall,
  member,
  type ScriptLane,
  scriptLane,
  scriptRuns,
  stopsOf,
  valueLine,
  waitsOf,
} from '../../../src/inspector/model/index.ts';
import { Waiting } from '../detail/Waiting.tsx';
import { Sign } from '../parts/icons.tsx';
import { Json } from '../parts/Json.tsx';
import { Section, Tool } from '../parts/parts.tsx';
import { duration, plural, wallClock } from '../parts/time.ts';
import { connection, cursor, goLive, known, place, select, selection } from '../store/state.ts';
import { CallOutcome, signOf } from './CallOutcome.tsx';
import { JournalList } from './JournalList.tsx';
import './script.css';

export function Script() {
  const at = place.value;
  const runs = scriptRuns(known(), at);
  const line = chosenOf(runs);
  useEffect(() => {
    const keys = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey || isTyping(event.target)) return;
      const by = event.key === 'n' ? 1 : event.key === 'p' ? -1 : 0;
      if (by !== 0 && line) stepStop(line, by);
    };
    addEventListener('keydown', keys);
    return () => removeEventListener('keydown', keys);
  }, [line]);
  if (!line) return <p class="none">No script has run at this moment.</p>;
  const lane = scriptLane(line, at);
  const standing = line.standing(at);
  const waits = line.aliveAt(at) ? waitsOf(known(), line.address, at) : [];
  const unfinished = lane.calls.some(({ outcome }) => outcome === undefined);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is scrolled with the keys.
    <section class="script scroll" aria-label="run of a script" tabIndex={0}>
      <header class="script-head">
        <Runs runs={runs} line={line} />
        <span class={`state-word${lane.how === undefined ? '' : ' gone'}`}>
          {lane.how ?? standing?.state ?? 'unknown'}
        </span>
        <Steps line={line} at={at} />
      </header>
      {unfinished ? <Waiting waits={waits} /> : null}
      <Code lane={lane} />
      <Section title="Calls" beside={plural(lane.calls.length, 'call')}>
        {lane.calls.length === 0 ? (
          <p class="beside">It has called nothing{lane.how === undefined ? ' yet' : ''}.</p>
        ) : (
          <Calls lane={lane} />
        )}
      </Section>
      {lane.result === undefined ? null : (
        <Section title="Result" beside={lane.how}>
          <pre class={`script-logs${lane.isError === true ? ' bad' : ''}`}>{lane.result}</pre>
        </Section>
      )}
      {lane.logs.length === 0 ? null : (
        <Section title="Logs">
          <pre class="script-logs">{lane.logs.join('\n')}</pre>
        </Section>
      )}
      <JournalList lane={lane} />
    </section>
  );
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement
  );
}

/** The selected run, or that of the selected request; otherwise the newest one. */
function chosenOf(runs: readonly ActorLine[]): ActorLine | undefined {
  const { actor, exchange } = selection.value;
  const found = exchange === undefined ? undefined : known().exchanges.find(exchange);
  return runs.find(({ address }) => address === actor) ?? runs.find(({ origin }) => origin === found?.seq) ?? runs[0];
}

function Runs({ runs, line }: { readonly runs: readonly ActorLine[]; readonly line: ActorLine }) {
  const epoch = known().hello?.epoch ?? 0;
  const nameOf = (run: ActorLine): string => {
    const life = run.lives.first;
    const begun = life === undefined ? '' : ` · ${wallClock(epoch + (life.since ?? life.at), false)}`;
    return `${displayName(run)}${begun}`;
  };
  if (runs.length === 1) return <h2>{nameOf(line)}</h2>;
  return (
    <select
      aria-label="run"
      value={line.address}
      onChange={({ currentTarget }) => select({ actor: currentTarget.value })}
    >
      {runs.map((run) => (
        <option key={run.address} value={run.address}>
          {nameOf(run)}
        </option>
      ))}
    </select>
  );
}

/** Moves the cursor to the previous or the next result that the script got. */
function stepStop(line: ActorLine, by: -1 | 1): void {
  const stops = stopsOf(line);
  const at = place.value;
  const next = by === 1 ? stops.find((seq) => seq > at) : stops.findLast((seq) => seq < at);
  if (next !== undefined) cursor.value = next;
  else if (by === 1 && connection.value.state === 'live') goLive();
}

function Steps({ line, at }: { readonly line: ActorLine; readonly at: number }) {
  const stops = stopsOf(line);
  const here = stops.filter((seq) => seq <= at).length;
  return (
    <div class="script-steps">
      <Tool
        icon="back"
        label="previous result"
        hint="P"
        disabled={!stops.some((seq) => seq < at)}
        onClick={() => stepStop(line, -1)}
      />
      <span class="beside">
        step {here} of {stops.length}
      </span>
      <Tool
        icon="forth"
        label="next result"
        hint="N"
        disabled={!stops.some((seq) => seq > at)}
        onClick={() => stepStop(line, 1)}
      />
    </div>
  );
}

/** Number of calls that a line shows: a loop makes many. */
const MOST_CHIPS = 6;

function Code({ lane }: { readonly lane: ScriptLane }) {
  if (lane.code === undefined) return <p class="beside">The text of the script is not known any more.</p>;
  const byLine = new Map<number, LaneCall[]>();
  for (const call of lane.calls) {
    if (call.line === undefined) continue;
    const there = byLine.get(call.line);
    if (there) there.push(call);
    else byLine.set(call.line, [call]);
  }
  const current = lane.calls.find(({ number }) => number === lane.call);
  return (
    <ol class="script-code" aria-label="script">
      {lane.code
        .trimEnd()
        .split('\n')
        .map((text, index) => {
          const number = index + 1;
          const calls = byLine.get(number) ?? [];
          const isHere = lane.line === number;
          return (
            <li key={number} class={isHere ? 'here' : ''} aria-current={isHere ? 'step' : undefined}>
              <span class="script-number">{number}</span>
              <code>{text === '' ? ' ' : text}</code>
              {calls.length === 0 ? null : (
                <span class="script-chips">
                  {calls.length > MOST_CHIPS ? <span class="beside">{calls.length - MOST_CHIPS} more, </span> : null}
                  {calls.slice(-MOST_CHIPS).map((call) => (
                    <Chip key={call.number} call={call} chosen={call.number === lane.call} />
                  ))}
                </span>
              )}
              {isHere && current ? <Here call={current} /> : null}
            </li>
          );
        })}
    </ol>
  );
}

function goTo({ from, to }: LaneCall): void {
  cursor.value = to ?? from;
}

function Chip({ call, chosen }: { readonly call: LaneCall; readonly chosen: boolean }) {
  return (
    <button
      type="button"
      class="script-chip"
      title={`call ${call.number}: ${call.name}`}
      aria-label={`call ${call.number}: ${call.name}`}
      aria-pressed={chosen}
      onClick={() => goTo(call)}
    >
      {call.number}
      <Sign shape={signOf(call)} />
    </button>
  );
}

/** Functions take one object, which is shown without the list around it. */
function onlyOf(args: Plain): Plain {
  const [only, ...more] = isList(args) ? args : [args];
  return only === undefined || more.length > 0 ? args : only;
}

/** The call at which the script is, below its line: its arguments, and what came back. */
function Here({ call }: { readonly call: LaneCall }) {
  return (
    <div class="script-here">
      <p>
        <b>
          call {call.number} {call.name}
        </b>{' '}
        <CallOutcome call={call} />
      </p>
      {call.args === undefined ? null : <Json value={onlyOf(call.args)} open={2} />}
      <Why call={call} />
      {call.data === undefined ? null : (
        <>
          <p class="beside">{call.outcome === 'threw' ? 'its error' : 'its result'}</p>
          <Json value={call.data} open={2} />
        </>
      )}
    </div>
  );
}

/** The terms of the approval for which a call waits. */
function Why({ call: { what, wait } }: { readonly call: LaneCall }) {
  const text = what === 'held' ? member(wait, 'text') : undefined;
  return typeof text === 'string' ? <p class="script-why beside">{text}</p> : null;
}

function Calls({ lane }: { readonly lane: ScriptLane }) {
  return (
    <table class="script-calls">
      <thead>
        <tr>
          <th scope="col">call</th>
          <th scope="col">function and arguments</th>
          <th scope="col">outcome</th>
          <th scope="col">line</th>
          <th scope="col">time</th>
        </tr>
      </thead>
      <tbody>
        {lane.calls.map((call) => (
          <tr key={call.number} class={call.number === lane.call ? 'chosen' : ''} onClick={() => goTo(call)}>
            <th scope="row">
              <button
                type="button"
                class="row-button"
                aria-label={`go to call ${call.number}`}
                onClick={() => goTo(call)}
              >
                {call.number}
              </button>
            </th>
            <td>
              <span class="mono script-name">{call.name}</span>
              <span class="two-lines mono beside">{call.args === undefined ? '' : givenLine(call.args)}</span>
            </td>
            <td>
              <CallOutcome call={call} />
              {call.data === undefined ? null : <span class="two-lines mono">{valueLine(call.data)}</span>}
            </td>
            <td class="script-figure">{call.line ?? '–'}</td>
            <td class="script-figure">{call.took === undefined ? '–' : duration(call.took)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
