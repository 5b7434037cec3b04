/** A gateway in the inspector: a call and the call behind it are one line, and its wait names the person whom the other server has asked. */
import { createServer, type ServerOptions } from 'troupe';
import { connect } from 'troupe/client';
import { settled } from 'troupe/testing';
import * as assert from 'uvu/assert';
import { topView } from '../../src/cli/top/top-view.ts';
import {
  actorTree,
  exchangeWaits,
  failuresOf,
  flatten,
  LIVE,
  Model,
  waitingList,
} from '../../src/inspector/model/index.ts';
import { upstreamsOf } from '../../src/inspector/model/upstreams.ts';
import { Redactor } from '../../src/inspector/redaction/redact.ts';
import { FrameEncoder } from '../../src/inspector/stream/frame-encoder.ts';
import { suite } from '../harness/door.ts';
import { hello } from './model/frames.ts';

const test = suite('inspector: gateway');

const server = (name: string, options: Partial<ServerOptions> = {}) =>
  createServer({ name, version: '1.0.0', log: () => {}, ...options });

function modelOf(observed: ReturnType<typeof server>): Model {
  const model = new Model();
  model.take(hello);
  const encoder = new FrameEncoder({
    redactor: new Redactor(),
    wants: () => false,
    chart: (frame) => model.take(frame),
  });
  observed.inspect((record) => model.take({ type: 'records', records: [encoder.encode(record)] }));
  return model;
}

for (const upstreamEras of ['legacy', 'modern'] as const)
  test(`a question of a ${upstreamEras} upstream is the wait of both calls, and names who was asked`, async () => {
    const upstream = server('github');
    upstream.tool('merge', { input: { type: 'object' } }, async (_, ctx) => {
      const schema = { type: 'object', properties: { sure: { type: 'boolean' } }, required: ['sure'] } as const;
      return (await ctx.elicit({ message: 'Merge?', schema })).status;
    });
    upstream.tool('fail', { input: { type: 'object' } }, () => {
      throw new Error('no');
    });
    const host = server('gateway');
    const model = modelOf(host);
    await host.mount('gh', upstream, { eras: upstreamEras });
    let answer = (_: object): void => {};
    const asked = new Promise<void>((resolve) => {
      answer = () => resolve();
    });
    let release = (): void => {};
    const answered = new Promise<void>((resolve) => {
      release = resolve;
    });
    const client = await connect(host, {
      eras: 'legacy',
      name: 'ada',
      version: '1.0.0',
      async elicit() {
        answer({});
        await answered;
        return { sure: true };
      },
    });
    await client.call('gh_fail', {});
    const merging = client.call('gh_merge', {});
    await asked;
    await settled();
    const exchanges = model.exchanges.all.until(LIVE).filter(({ method }) => method === 'tools/call');
    const downstream = exchanges.find(({ target }) => target === 'gh_merge');
    const beyond = exchanges.find(({ target }) => target === 'merge');
    assert.ok(downstream && beyond);
    assert.is(beyond.origin, downstream);
    assert.ok(downstream.relayed?.includes(beyond));
    const [wait] = exchangeWaits(model, downstream, LIVE);
    assert.is(wait?.what, '[gh] Merge?');
    assert.is(wait?.whom, 'the user of ada 1.0.0');
    // A modern server has answered its call with the question.
    assert.is(beyond.status, upstreamEras === 'modern' ? 'asked' : 'open');
    const [hop] = exchangeWaits(model, beyond, LIVE);
    if (upstreamEras === 'legacy') assert.equal([hop?.who, hop?.whom], ['gh', 'the user of ada 1.0.0']);
    assert.equal(
      waitingList(model, LIVE)
        .filter(({ idle }) => !idle)
        .map(({ who }) => who),
      ['tools/call gh_merge'],
    );
    assert.equal(
      failuresOf(model, LIVE).map(({ what }) => what),
      ['tools/call gh_fail'],
    );
    const tree = actorTree(model, LIVE);
    const [mount] = tree.find(({ id }) => id === 'group upstreams')?.children ?? [];
    assert.is(mount?.label, 'gh');
    assert.ok(mount && flatten([mount]).some(({ kind, state }) => kind === 'client' && state === 'ready'));
    const lanes = new Set(model.rows.flatMap(({ from, to }) => [from, to]));
    assert.ok(lanes.has('client') && lanes.has('upstream gh'));
    release();
    await merging;
    await settled();
    const [line] = upstreamsOf(model);
    assert.equal([line?.name, line?.state, line?.failed, line?.open], ['gh', 'offering.current', 1, 0]);
    assert.is(line?.count, upstreamEras === 'modern' ? 3 : 2);
    const screen = topView(model, {
      ...{ now: model.timeAt(LIVE), columns: 120, rows: 30, sort: 'tree', offset: 0, status: 'live', keys: '' },
    });
    assert.ok(
      screen.some(({ text }) => /^upstream gh · offering\.current · .* · \d calls · 1 failed · 0 open/.test(text)),
    );
    await client.close();
    await host.close();
  });
