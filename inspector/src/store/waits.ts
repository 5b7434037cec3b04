/** Requests the deadlines of waiting actors that are not in the focus: the stream has only the views of focused actors. */
import { isUnused, KNOWS_HIBERNATING, LIVE, tableOf, waitingList } from '../../../src/inspector/model/index.ts';
import { readViews } from './api.ts';
import { poll } from './poll.ts';
import { addViews, liveModel } from './source.ts';
import { connection } from './state.ts';

/** Maximum number of actors of one request (`src/inspector/http/viewer-input.ts`). */
const MOST = 64;

/** Interval of the requests, in milliseconds. */
const REFRESH_MS = 1_000;

/** Requests the views of waiting actors that have changed since their last view. */
export const waits = poll(async () => {
  const model = liveModel();
  if (!model || connection.value.state !== 'live') return;
  const stale = new Set<string>([KNOWS_HIBERNATING]);
  for (const { actor, exchange, asleep } of waitingList(model, LIVE)) {
    const connection = exchange?.connection;
    for (const address of [actor, connection === undefined ? undefined : tableOf(connection)]) {
      const line = address === undefined ? undefined : model.actor(address);
      if (!line?.aliveAt(LIVE) || asleep) continue;
      const view = line.view(LIVE);
      if (!view || view.seq < (line.standing(LIVE)?.seq ?? 0)) stale.add(line.address);
    }
  }
  // They may have a client from before this page was opened.
  for (const line of model.actors.values())
    if (line.aliveAt(LIVE) && !line.view(LIVE) && isUnused(model, line)) stale.add(line.address);
  // The stream reports a lost connection.
  addViews(await readViews([...stale].slice(0, MOST)));
}, REFRESH_MS);
