/** Invented traffic for the views. Not shipped. */
import type { MessageLane, MessageRow } from '../../src/messages/props.ts';
import type { StateSpan, TimelineMark, TimelineRow, WireSpan } from '../../src/timeline/props.ts';

let seed = 6;
const random = (): number => {
  seed = (seed * 1103515245 + 12345) % 2147483648;
  return seed / 2147483648;
};
const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;

export function timeline(count: number) {
  const names = [
    'server',
    'session claude',
    'request #12 tools/call',
    'ask "Charge alice 13?"',
    'order order_9fA…',
    'order order_77b…',
    'registry tools',
    'executor tools',
    'session cursor',
  ];
  const words = [
    'cart',
    'confirming',
    'paying',
    'packing',
    'shipped',
    'running',
    'ready',
    'awaiting input',
    'failed',
    'idle',
  ];
  const moments: number[] = [];
  const rows = names.map((label, index) => ({
    id: label,
    label,
    kind: label.split(' ')[0] ?? '',
    depth: index > 1 && index < 6 ? 1 : 0,
    states: [] as StateSpan[],
    marks: [] as TimelineMark[],
    wire: [] as WireSpan[],
    ...(index === 8 ? { until: 24_000 } : {}),
  }));
  rows.splice(1, 0, { id: 'wire c1', label: 'wire', kind: 'wire', depth: 0, states: [], marks: [], wire: [] });
  let at = 1_000;
  for (let seq = 1; seq <= count; seq += 1) {
    at += random() < 0.02 ? 5_000 + random() * 60_000 : random() * 200;
    moments.push(at);
    const row = pick(rows);
    if (row.until !== undefined && at > row.until) continue;
    if (row.kind === 'wire')
      row.wire.push({
        seq,
        at,
        end: at + random() * 600,
        label: 'tools/call order_send',
        outcome: random() < 0.1 ? 'error' : 'ok',
      });
    else row.states.push({ seq, at, state: pick(words) });
    if (random() < 0.03)
      row.marks.push({
        seq,
        at,
        kind: pick(['crashed', 'unhandled', 'dropped', 'gap'] as const),
        text: 'checkout: no state takes it',
      });
  }
  const shown: readonly TimelineRow[] = rows;
  return { rows: shown, moments, until: at + 400 };
}

export function messages(count: number) {
  const lanes: MessageLane[] = [
    { id: 'client', label: 'claude', kind: 'client' },
    { id: 'session', label: 'session', kind: 'session' },
    { id: 'requests', label: 'requests', kind: 'requests' },
    { id: 'registry', label: 'tools', kind: 'registry' },
    { id: 'executor', label: 'tools', kind: 'executor' },
    { id: 'o1', label: 'order_9fA3', kind: 'handle' },
    { id: 'o2', label: 'order_77bX', kind: 'handle', gone: true },
    { id: 'emitter', label: 'emitter', kind: 'emitter' },
  ];
  const rows: MessageRow[] = [];
  let at = 1_000;
  for (let seq = 1; seq <= count; seq += 1) {
    at += random() < 0.05 ? 8_000 : random() * 40;
    const kind = pick(['mail', 'mail', 'mail', 'wire', 'event', 'emit'] as const);
    const from = kind === 'wire' ? 'client' : random() < 0.06 ? undefined : pick(lanes).id;
    const to = pick(lanes).id;
    rows.push({
      seq,
      at,
      ...(from === undefined ? {} : { from }),
      to,
      kind,
      name: pick([
        'initialize',
        'tools/call',
        'execute',
        'add_item',
        'checkout',
        'progress',
        'answered',
        'done: charge',
      ]),
      ...(random() < 0.12 ? { mark: pick(['unhandled', 'dropped', 'queued', 'crashed'] as const) } : {}),
    });
  }
  return { lanes, rows };
}
