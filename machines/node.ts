/**
 * The lifecycle of a node, which claims cells of a shared store, loses them, and gives them up. Pure.
 * `src/features/cluster/cluster-node.ts` acts on it.
 */
import { Chart } from './chart/chart.ts';

export type NodeEvent =
  /** The store is open: the node asks for a seat. */
  | { type: 'join' }
  /** The database has given the node a seat under a new id. */
  | { type: 'joined' }
  /** The database has given no seat, or does not respond. */
  | { type: 'refused' }
  /** This node and most of the others reach each other. */
  | { type: 'linked' }
  /** The data of the first cells is in memory. */
  | { type: 'settled' }
  /** The node is fenced, or must assume so: it may commit nothing more. */
  | { type: 'lost' }
  /** Nothing of the cells is in memory. */
  | { type: 'released' }
  /** For too long, this node has reached too few of the others. */
  | { type: 'isolate' }
  /** The server is stopping: the node gives its cells to the others. */
  | { type: 'leave' }
  /** No cell is left that another node could own. */
  | { type: 'empty' }
  /** The node has given up its seat. */
  | { type: 'left' };

/** *member*: the node has a seat. *claiming*: it claims its share of the cells. *ready*: it serves requests. *ended*: it joins no more. */
type NodeTag = 'member' | 'claiming' | 'ready' | 'ended';

export const nodeMachine = new Chart<NodeEvent, NodeTag>({
  id: 'node',
  initial: 'outside',
  states: {
    outside: {
      description: 'it has no seat',
      on: { join: 'joining', leave: 'gone' },
    },
    joining: {
      description: 'it asks the database for a seat, under a new id',
      on: { joined: 'linking', refused: 'outside', leave: 'gone' },
    },
    linking: {
      description: 'it waits until it and most of the other nodes reach each other, and claims nothing before',
      tags: ['member'],
      on: { linked: 'settling', isolate: 'withdrawing', lost: 'losing', leave: 'leaving' },
    },
    settling: {
      description: 'it claims its first cells and reads their data',
      tags: ['member', 'claiming'],
      on: { settled: 'owning', lost: 'losing', leave: 'leaving' },
    },
    owning: {
      tags: ['member', 'claiming', 'ready'],
      on: { lost: 'losing', isolate: 'withdrawing', leave: 'leaving' },
    },
    withdrawing: {
      description: 'it gives its cells to the others, and joins again later',
      tags: ['member'],
      on: { released: 'outside', lost: 'losing', leave: 'leaving' },
    },
    losing: {
      description: 'it discards all that it has in memory of its cells, and writes nothing',
      on: { released: 'outside', leave: 'gone' },
    },
    leaving: {
      description: 'it gives its cells to the others, one group after the other',
      tags: ['member', 'ready', 'ended'],
      on: { empty: 'emptied', lost: 'gone', left: 'gone' },
    },
    emptied: {
      description: 'the server stops; requests in flight may still commit',
      tags: ['member', 'ended'],
      on: { left: 'gone', lost: 'gone' },
    },
    gone: { type: 'final', tags: ['ended'] },
  },
});
