/** A page with a single view, for its development: `?view=chart&chart=order&theme=dark&state={…}`. Not shipped. */

import charts from 'virtual:charts';
import { render } from 'preact';
import { Chart, type ChartSelection } from '../../src/chart/Chart.tsx';
import { Messages } from '../../src/messages/Messages.tsx';
import { Timeline } from '../../src/timeline/Timeline.tsx';
import { messages, timeline } from './data.ts';

const asked = new URLSearchParams(location.search);
document.documentElement.dataset.theme = asked.get('theme') ?? 'light';
const view = asked.get('view') ?? 'chart';
const name = asked.get('chart') ?? 'order';
const count = Number(asked.get('count') ?? 300);
const { visits, ...state } = JSON.parse(asked.get('state') ?? '{}');
const counts = visits && { states: new Map(visits.states), edges: new Map(visits.edges) };
const page = document.body.appendChild(document.createElement('div'));
page.id = 'page';
Object.assign(page.style, { position: 'fixed', inset: '0', font: '13px var(--sans)', color: 'var(--ink)' });

const time = timeline(count);
const said = messages(count);
interface Now {
  chosen?: ChartSelection | undefined;
  row?: string | undefined;
  record?: number | undefined;
  cursor?: number | undefined;
  brush?: { readonly from: number; readonly to: number } | undefined;
  by: 'actor' | 'kind';
}
const now: Now = { chosen: state.selected, cursor: state.cursor, by: 'actor' };
let version = 0;

function put(change: Partial<Now>): void {
  Object.assign(now, change);
  version += 1;
  draw();
}

function draw(): void {
  const { chosen, row, record, cursor, brush, by } = now;
  if (view === 'chart')
    render(
      <Chart
        id={name}
        chart={charts[name]}
        active={[]}
        {...state}
        {...(counts && { visits: counts })}
        selected={chosen}
        onSelect={(next) => put({ chosen: next })}
      />,
      page,
    );
  else if (view === 'messages')
    render(
      <Messages
        {...said}
        version={version}
        by={by}
        onBy={(next) => put({ by: next })}
        onSelect={(next) => put({ record: next })}
        reports={new Map()}
        unfolded={new Set()}
        onFold={() => {}}
        data={(seq) => ({ seq, arguments: { sku: 'tea', quantity: 2 }, token: '«redacted»' })}
        {...(record === undefined
          ? {}
          : { selected: record, chain: { causes: new Set([record - 1, record - 2]), effects: new Set([record + 1]) } })}
      />,
      page,
    );
  else {
    if (view === 'strip') Object.assign(page.style, { height: '110px', bottom: 'auto' });
    render(
      <Timeline
        form={view === 'strip' ? 'strip' : 'full'}
        {...time}
        version={version}
        onCursor={(at) => put({ cursor: at })}
        onStep={(step) => put({ cursor: (now.cursor ?? time.until) + step * 50 })}
        onLive={() => put({ cursor: undefined })}
        onBrush={(next) => put({ brush: next })}
        onSelect={(id) => put({ row: id })}
        {...(cursor === undefined ? {} : { cursor })}
        {...(brush === undefined ? {} : { brush })}
        {...(row === undefined ? {} : { selected: row })}
      />,
      page,
    );
  }
}
draw();
