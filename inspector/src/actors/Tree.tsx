/** The tree of actors: grouped by kind, with states and deadlines, and with recently ended actors. */
import { signal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import type { TreeNode } from '../../../src/inspector/model/index.ts';
import { Icon, type Shape, Sign } from '../parts/icons.tsx';
import { List } from '../parts/List.tsx';
import { bare, countdown, short } from '../parts/time.ts';
import { type Filter, fits } from '../store/filter.ts';
import { filter, now, select, selection, tree } from '../store/state.ts';
import { isWaiting } from './waiting-states.ts';
import './tree.css';

interface Row {
  readonly node: TreeNode;
  readonly depth: number;
  readonly open: boolean;
  readonly parent: number;
}

const ROW = 26;
/** Nodes that the reader has expanded or collapsed against their default. */
const turned = signal<ReadonlySet<string>>(new Set());

export function Tree() {
  const nodes = tree.value;
  const rows = useMemo(() => rowsOf(nodes, filter.value, turned.value), [nodes, filter.value, turned.value]);
  const { actor, exchange, unseen } = selection.value;
  const chosen = rows.findIndex(({ node }) =>
    node.exchange
      ? node.exchange.key === exchange
      : node.unseen
        ? node.actor === unseen?.table && node.unseen.key === unseen?.key
        : node.actor !== undefined && node.id === actor,
  );
  const choose = (index: number): void => {
    const node = rows[index]?.node;
    if (node?.exchange) select({ exchange: node.exchange.key });
    else if (node?.unseen && node.actor !== undefined) select({ unseen: { table: node.actor, key: node.unseen.key } });
    else if (node?.actor !== undefined) select({ actor: node.actor });
    else if (node) here.value = node.id;
  };
  const at = here.value === undefined ? -1 : rows.findIndex(({ node }) => node.id === here.value);
  const current = at >= 0 && rows[at]?.node.kind === 'group' ? at : chosen;
  return (
    <List
      class="tree"
      id="actor"
      label="actors"
      role="tree"
      count={rows.length}
      height={ROW}
      chosen={current}
      onChoose={(index) => {
        here.value = undefined;
        choose(index);
      }}
      onKey={(event, index) => {
        const row = rows[index];
        if (!row) return false;
        if (event.key === 'Enter' || event.key === ' ') turn(row.node);
        else if (event.key === 'ArrowRight' && !row.open && row.node.children.length > 0) turn(row.node);
        else if (event.key === 'ArrowLeft' && row.open && row.node.children.length > 0) turn(row.node);
        else if (event.key === 'ArrowLeft' && row.parent >= 0) choose(row.parent);
        else return false;
        return true;
      }}
      row={(index) => (
        <TreeRow
          key={rows[index]?.node.id}
          row={rows[index]}
          index={index}
          chosen={index === current}
          choose={choose}
        />
      )}
      empty="No actors yet."
    />
  );
}

/** The group at the keyboard's position. It is not a selection. */
const here = signal<string | undefined>(undefined);

function turn({ id }: TreeNode): void {
  const next = new Set(turned.value);
  if (!next.delete(id)) next.add(id);
  turned.value = next;
}

interface TreeRowProps {
  readonly row: Row | undefined;
  readonly index: number;
  readonly chosen: boolean;
  readonly choose: (index: number) => void;
}

function TreeRow({ row, index, chosen, choose }: TreeRowProps) {
  if (!row) return null;
  const { node, depth, open } = row;
  const inner = node.children.length > 0;
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the tree has the focus, and its keys.
    <div
      id={`actor-${index}`}
      role="treeitem"
      tabIndex={-1}
      class={`node ${node.kind}${node.gone === undefined ? '' : node.asleep ? ' asleep' : ' gone'}`}
      aria-level={depth + 1}
      aria-selected={chosen}
      {...(inner ? { 'aria-expanded': open } : {})}
      style={{ paddingLeft: `${8 + depth * 14}px` }}
      title={titleOf(node)}
      onClick={() => {
        here.value = node.kind === 'group' ? node.id : undefined;
        if (node.kind === 'group') turn(node);
        else choose(index);
      }}
      onDblClick={() => turn(node)}
    >
      {inner ? (
        <span
          class={`twist${open ? ' open' : ''}`}
          aria-hidden="true"
          onClick={(event) => {
            event.stopPropagation();
            turn(node);
          }}
        />
      ) : (
        <span class="twist leaf" aria-hidden="true" />
      )}
      {node.kind === 'group' ? null : <Icon name={node.kind} size={14} />}
      <span class={nameClass(node)}>{short(bare(node.label), 40)}</span>
      <Beside node={node} />
    </div>
  );
}

/**
 * The class is on the name itself: Chromium 156 does not always restyle the children of a row whose class has changed.
 */
function nameClass({ kind, gone, asleep }: TreeNode): string {
  if (gone !== undefined) return asleep === true ? 'node-name asleep' : 'node-name gone';
  return kind === 'session' || kind === 'server' ? 'node-name main' : 'node-name';
}

function Beside({ node }: { readonly node: TreeNode }) {
  if (node.kind === 'group') return <span class="node-state">{node.children.length + (node.more ?? 0)}</span>;
  const shape = shapeOf(node);
  return (
    <span class="node-state">
      {node.due === undefined ? null : <span class="node-due">{countdown(node.due - now.value)}</span>}
      {node.kind === 'requests' || (shape === 'waiting' && QUIET.has(node.kind)) ? null : (
        <span class="node-word">{node.asleep ? node.state : (node.gone ?? node.state)}</span>
      )}
      <Sign shape={shape} title={WORDS[shape]} />
    </span>
  );
}

const WORDS: Readonly<Record<Shape, string>> = {
  here: 'live',
  waiting: 'waiting',
  asleep: 'hibernating',
  gone: 'ended',
  trouble: 'failure',
  open: 'open',
  ok: 'done',
  failed: 'failed',
  cancelled: 'cancelled',
  asked: 'asked',
};

/** For these kinds, waiting is the only state. */
const QUIET = new Set<TreeNode['kind']>(['ask', 'request', 'exchange']);

/** The signs of the final states of a task. Its actor stays until its lifetime ends. */
const ENDED: Readonly<Record<string, Shape>> = { completed: 'ok', failed: 'failed', cancelled: 'cancelled' };

export function shapeOf(node: TreeNode): Shape {
  if (node.gone !== undefined) return node.asleep === true ? 'asleep' : 'gone';
  if (node.trouble === 'crashed') return 'trouble';
  const ended = node.kind === 'task' ? ENDED[node.state ?? ''] : undefined;
  if (ended !== undefined) return ended;
  if (node.kind === 'exchange' || isWaiting(node.state ?? '')) return 'waiting';
  // An actor that has rejected an event still waits.
  if (
    node.due !== undefined ||
    node.waits === true ||
    node.children.some(({ kind, gone }) => kind === 'ask' && gone === undefined)
  )
    return 'waiting';
  return node.trouble === undefined ? 'here' : 'trouble';
}

function titleOf({ label, actor, state, gone, trouble }: TreeNode): string {
  const about = [label, actor === label ? undefined : actor, gone === undefined ? state : `gone: ${gone}`, trouble];
  return about.filter((part) => part !== undefined).join(' · ');
}

function rowsOf(nodes: readonly TreeNode[], filter: Filter, turned: ReadonlySet<string>): readonly Row[] {
  const rows: Row[] = [];
  const add = (node: TreeNode, depth: number, parent: number): void => {
    if (!within(node, filter)) return;
    const open = node.children.length > 0 && (filter.any || turned.has(node.id) === (node.closed === true));
    const at = rows.push({ node, depth, open, parent }) - 1;
    if (open) for (const child of node.children) add(child, depth + 1, at);
  };
  for (const node of nodes) add(node, 0, -1);
  return rows;
}

/** True if the node or one of its children matches the filter. */
function within(node: TreeNode, filter: Filter): boolean {
  const { kind, label, actor, state, gone, trouble, exchange } = node;
  const status = trouble === undefined ? (gone === undefined ? (state ?? '') : 'gone') : `${state} ${trouble} error`;
  const fit = fits(filter, {
    types: [kind, ...(exchange ? [exchange.method] : [])],
    status,
    actors: [label, actor],
  });
  return (fit && kind !== 'group') || node.children.some((child) => within(child, filter));
}
