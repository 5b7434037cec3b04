/** The details of one actor: its state, its waits, its context, its possible transitions, and its history. */
import { useMemo } from 'preact/hooks';
import type { Plain } from '../../../src/inspector/frames.ts';
import {
  type ActorLine,
  differences,
  displayName,
  hasFinished,
  hibernates,
  LIVE,
  type Since,
  waitsOf,
} from '../../../src/inspector/model/index.ts';
import { Icon } from '../parts/icons.tsx';
import { Json } from '../parts/Json.tsx';
import { later } from '../parts/Later.tsx';
import { ActorLink, At, Section } from '../parts/parts.tsx';
import { duration, plural } from '../parts/time.ts';
import { connection, cursor, isLive, known, mark, now, place, show } from '../store/state.ts';
import { Act } from './Act.tsx';
import { History } from './History.tsx';
import { NextSteps } from './NextSteps.tsx';
import { Waiting } from './Waiting.tsx';

/** Only for viewers who may control the server. */
const WhatIfForm = later('This form', async () => (await import('./WhatIfForm.tsx')).WhatIfForm);

export function ActorDetail({ line }: { readonly line: ActorLine }) {
  const data = known();
  const at = place.value;
  const { address } = line;
  const alive = line.aliveAt(at);
  const standing = line.standing(at);
  const life = line.lives.before(at);
  const view = line.view(at);
  const fresh = view !== undefined && view.seq >= (standing?.seq ?? 0);
  const waits = waitsOf(data, address, at);
  const context = line.context(at);
  const finished = hasFinished(data, address, at);
  return (
    <article class="what">
      <header>
        <p class="kind">
          <Icon name={line.kind} size={14} />
          {line.kind}
          {line.label === undefined ? null : <span class="mono beside">{address}</span>}
        </p>
        <h2>{displayName(line)}</h2>
        {alive ? (
          <p class="stands">
            <span class="state-word">{standing?.state ?? 'unknown'}</span>
            <Lasting since={data.since(line, 'state', at)} before="for " />
          </p>
        ) : (
          <p class="stands">
            <span class="state-word gone">{hibernates(life?.why) ? (standing?.state ?? 'hibernates') : 'gone'}</span>
            <span class="beside">
              {life?.why} {life?.endAt === undefined ? null : <At at={life.endAt} />}
            </span>
          </p>
        )}
      </header>
      {line.kind === 'run' ? (
        <button type="button" class="link" onClick={() => show('script')}>
          its script, calls and journal
        </button>
      ) : null}
      {alive ? <Waiting waits={waits} /> : null}
      {alive && finished ? <p class="idle">It has finished, and accepts no more events.</p> : null}
      {alive && !finished && waits?.length === 0 ? <p class="idle">Idle until the next message.</p> : null}
      {context === undefined || isEmpty(context) ? null : <Context line={line} />}
      {line.chart === undefined || !alive ? null : <NextSteps line={line} {...(fresh ? { next: view.next } : {})} />}
      {line.chart !== undefined && alive && !finished && isLive.value && connection.value.state === 'live' ? (
        <WhatIfForm key={address} line={line} />
      ) : null}
      {isLive.value && data.hello?.control === true ? <Act line={line} /> : null}
      <Section title="Facts">
        <dl class="facts">
          {fresh && view.mailbox > 0 ? <Fact name="mailbox">{plural(view.mailbox, 'message')} waiting</Fact> : null}
          <Fact name="rate">{line.rate(now.value, 10_000).toFixed(1)} records/s</Fact>
          {life === undefined ? null : (
            <Fact name="age">
              <Lasting since={data.since(line, 'life', at)} {...(alive ? {} : { until: life.endAt })} />
            </Fact>
          )}
          {line.parent === undefined ? null : (
            <Fact name="parent">
              <ActorLink address={line.parent} />
            </Fact>
          )}
          {line.connection === undefined || data.doorOf(line.connection) === address ? null : (
            <Fact name="connection">
              <ActorLink address={data.doorOf(line.connection)} />
            </Fact>
          )}
          {fresh
            ? Object.entries(view.facts).map(([name, value]) => (
                <Fact key={name} name={name}>
                  <FactValue name={name} value={value} />
                </Fact>
              ))
            : null}
        </dl>
      </Section>
      <History line={line} />
      {cursor.value === LIVE ? null : <p class="beside note">The state at the cursor. The server has continued.</p>}
    </article>
  );
}

interface LastingProps {
  readonly since: Since | undefined;
  readonly until?: number | undefined;
  readonly before?: string;
}

/** A state that began before the observation may have lasted longer. */
function Lasting({ since, until = now.value, before = '' }: LastingProps) {
  if (since === undefined) return null;
  return <span class="beside">{`${before}${duration(until - since.at)}${since.earlier ? ' or longer' : ''}`}</span>;
}

function Fact({ name, children }: { readonly name: string; readonly children: preact.ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** Facts that are times by the server's clock. */
const TIMES = new Set(['deadline', 'until', 'due', 'since']);

function FactValue({ name, value }: { readonly name: string; readonly value: Plain }) {
  const epoch = known().hello?.epoch ?? 0;
  if (typeof value === 'object' && value !== null) return <Json value={value} open={1} />;
  if (typeof value === 'boolean') return <span>{value ? 'yes' : 'no'}</span>;
  if (typeof value !== 'number') return <span>{String(value)}</span>;
  // A number of this size is no count, but milliseconds since 1970.
  if (value > 1e12) return <At at={value - epoch} />;
  return TIMES.has(name) ? <At at={value} /> : <span>{value.toLocaleString('en')}</span>;
}

function isEmpty(value: Plain): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}

function Context({ line }: { readonly line: ActorLine }) {
  const at = place.value;
  const context = line.context(at);
  const standing = line.standing(at);
  // Compares with the marked moment, or otherwise with the moment before the last step.
  const against = mark.value ?? (line.taken(at)?.seq ?? standing?.seq ?? 1) - 1;
  const before = line.context(against);
  const changed = useMemo(
    () => new Set(before === undefined ? [] : differences(before, context).map(({ path }) => path)),
    [before, context],
  );
  if (context === undefined) return null;
  return (
    <Section
      title="Context"
      beside={changed.size === 0 ? undefined : mark.value === undefined ? 'Δ last step' : 'Δ since the mark'}
    >
      <Json value={context} changed={changed} />
    </Section>
  );
}
