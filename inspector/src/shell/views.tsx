/** The props of the chart, the messages and the timeline at the cursor. */
import { signal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import {
  type ActorLine,
  displayName,
  isAuthored,
  isMachinery,
  LIVE,
  type TimelineRow,
  timelineRows,
} from '../../../src/inspector/model/index.ts';
import type { ChartProps, ChartSelection } from '../chart/Chart.tsx';
import { later } from '../parts/Later.tsx';
import { ActorLink } from '../parts/parts.tsx';
import { wallClock } from '../parts/time.ts';
import { type Filtered, fits } from '../store/filter.ts';
import { recall, remember } from '../store/memory.ts';
import {
  brush,
  cursor,
  filter,
  goLive,
  isLive,
  known,
  moveTo,
  now,
  place,
  select,
  selection,
  step,
  supposed,
  version,
} from '../store/state.ts';
import { Timeline } from '../timeline/Timeline.tsx';
import { chainOf } from './chain.ts';
import { charted } from './charted.ts';
import { lanesOf, RowFeed } from './lanes.ts';

const Chart = later('This view', async () => (await import('../chart/Chart.tsx')).Chart);
const inChart = signal<{ readonly actor: string; readonly selected: ChartSelection } | undefined>(undefined);

export function ChartView() {
  const line = charted();
  if (!line) return <NoChart />;
  return <ChartOf line={line} />;
}

function ChartOf({ line }: { readonly line: ActorLine }) {
  const { address } = line;
  const chart = known().chartOf(address);
  const at = place.value;
  const visits = useMemo(() => known().visits(address, at), [address, at, version.value]);
  if (!chart) return <NoChart />;
  const standing = line.standing(at);
  const taken = line.taken(at);
  const view = line.view(at);
  const status = line.steps.before(at)?.status;
  const suppose = supposed.value?.actor === address ? supposed.value.result : undefined;
  const chosen = inChart.value?.actor === address ? inChart.value.selected : undefined;
  const props: ChartProps = {
    id: chart.id,
    chart: chart.root,
    // A page that was opened later has the active states of the server's view only.
    active: standing?.active.length ? standing.active : (view?.active ?? []),
    delays: line.running(at).map(({ event, due, delay }) => ({ event, due, lasts: delay })),
    // Read once: the animations of the chart's timers run without it.
    now: now.peek(),
    running: isLive.value,
    visits,
    onSelect: (selected) => {
      inChart.value = selected === undefined ? undefined : { actor: address, selected };
      if (selection.value.actor !== address) select({ actor: address });
    },
    ...(status === undefined ? {} : { status }),
    // Transitions before the last state change are outdated.
    ...(taken && standing && taken.active.join() === standing.active.join()
      ? { taken: { seq: taken.seq, edges: taken.edges } }
      : {}),
    ...(view && standing && view.seq >= standing.seq ? { next: view.next } : {}),
    ...(chosen === undefined ? {} : { selected: chosen }),
    ...(suppose ? { whatIf: { edges: suppose.edges, active: suppose.active } } : {}),
  };
  return <Chart {...props} />;
}

function NoChart() {
  const { actor, exchange } = selection.value;
  const line = known().actor(actor ?? '');
  const governed = [...known().actors.values()].filter(
    (line) => line.chart !== undefined && !isMachinery(line.kind) && line.aliveAt(cursor.value),
  );
  // Charts of authors come first.
  const authored = governed.filter(({ kind }) => isAuthored(kind));
  const shown = [...authored.slice(-6), ...governed.filter(({ kind }) => !isAuthored(kind)).slice(-6)].slice(0, 6);
  return (
    <div class="none">
      <p>
        {line
          ? `${displayName(line)} has no statechart.`
          : exchange === undefined
            ? 'Select an actor to see its statechart.'
            : 'No actor with a statechart has served this request.'}
      </p>
      {shown.length === 0 ? null : (
        <p class="beside">
          Actors with one:{' '}
          {shown.map(({ address }, index) => (
            <span key={address}>
              {index === 0 ? null : ' · '}
              <ActorLink address={address} />
            </span>
          ))}
        </p>
      )}
    </div>
  );
}

const Messages = later('This view', async () => (await import('../messages/Messages.tsx')).Messages);
const lanesBy = signal<'actor' | 'kind'>(recall('lanes') === 'kind' ? 'kind' : 'actor');
const feed = new RowFeed();
/** The calls whose progress is shown in the messages. */
const unfolded = signal<ReadonlySet<number>>(new Set());

export function MessagesView() {
  const by = lanesBy.value;
  const { actor, record } = selection.value;
  const rows = feed.rows(known(), { by, filter: filter.value, brush: brush.value, unfolded: unfolded.value });
  const lanes = lanesOf(known(), rows, by);
  const chain = useMemo(() => (record === undefined ? undefined : chainOf(known(), record)), [record, version.value]);
  return (
    <Messages
      lanes={lanes}
      rows={rows}
      version={version.value}
      by={by}
      onBy={(next) => {
        lanesBy.value = next;
        remember('lanes', next);
      }}
      reports={feed.reports}
      unfolded={unfolded.value}
      onFold={(seq) => {
        const next = new Set(unfolded.value);
        if (!next.delete(seq)) next.add(seq);
        unfolded.value = next;
      }}
      onSelect={(seq) => {
        if (seq === undefined) return select(actor === undefined ? {} : { actor });
        const found = known().causes.find(seq);
        const exchange = found?.type === 'wire' ? known().exchanges.of(found) : undefined;
        const about = found && 'actor' in found ? { actor: found.actor } : {};
        select({ record: seq, ...about, ...(exchange ? { exchange: exchange.key } : {}) });
      }}
      data={(seq) => known().dataOf(seq)}
      clock={clockOf()}
      {...(record === undefined ? {} : { selected: record })}
      {...(chain ? { chain } : {})}
      {...(cursor.value === LIVE ? {} : { cursor: cursor.value })}
    />
  );
}

export function TimelineView({ form = 'full' }: { readonly form?: 'full' | 'strip' }) {
  const { actor, exchange } = selection.value;
  const rows = useMemo(
    () =>
      timelineRows(known(), actor).filter(
        (row) => (form === 'full' || isInStrip(row, actor)) && fits(filter.value, asked(row)),
      ),
    [version.value, actor, filter.value, known(), form],
  );
  return (
    <Timeline
      form={form}
      rows={rows}
      moments={known().moments}
      version={version.value}
      until={isLive.value ? now.value : known().timeAt(LIVE)}
      live={isLive.value}
      onCursor={moveTo}
      onStep={step}
      onLive={goLive}
      onBrush={(next) => {
        brush.value = next;
      }}
      onSelect={(id, seq) => {
        if (!id.startsWith('wire ')) return select({ actor: id, ...(seq === undefined ? {} : { record: seq }) });
        const [first] = known().exchanges.at(seq ?? 0);
        if (first) select({ exchange: first.key });
        else select({ actor: known().doorOf(id.slice(5)) });
      }}
      clock={clockOf()}
      {...(cursor.value === LIVE ? {} : { cursor: known().timeAt(cursor.value) })}
      {...(brush.value ? { brush: brush.value } : {})}
      {...(actor === undefined
        ? exchange === undefined
          ? {}
          : { selected: `wire ${known().exchanges.find(exchange)?.connection ?? ''}` }
        : { selected: actor })}
    />
  );
}

/**
 * The strip has little space. It shows live actors, actors with problems, and a client's wire instead of its session.
 */
function isInStrip({ id, kind, until, marks }: TimelineRow, selected: string | undefined): boolean {
  if (id === selected) return true;
  if (kind === 'wire')
    return (
      known()
        .actor(known().doorOf(id.slice(5)))
        ?.aliveAt(LIVE) !== false
    );
  if (kind === 'session' || kind === 'ask' || kind === 'invoked') return marks.length > 0;
  return until === undefined || marks.length > 0;
}

/** The searchable parts of a row. */
function asked({ id, label, kind, states }: TimelineRow): Filtered {
  return { actors: [id, label], types: [kind], words: states.slice(-1).map(({ state }) => state) };
}

function clockOf(): (at: number) => string {
  const epoch = known().hello?.epoch ?? 0;
  return (at) => wallClock(epoch + at);
}
