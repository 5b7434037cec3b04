/** One wire exchange: request, response, duration and server actor, to copy and to send again. */
import {
  doorName,
  exchangeWaits,
  hopName,
  isUpstream,
  scriptRuns,
  statusAt,
  type WireExchange,
} from '../../../src/inspector/model/index.ts';
import { Icon } from '../parts/icons.tsx';
import { Json } from '../parts/Json.tsx';
import { ActorLink, At, copy, Section } from '../parts/parts.tsx';
import { bytes, duration } from '../parts/time.ts';
import { known, now, place, say, select, show } from '../store/state.ts';
import { curlOf } from '../wire/curl.ts';
import { Outcome } from '../wire/Outcome.tsx';
import { Waiting } from './Waiting.tsx';

export function ExchangeDetail({ exchange }: { readonly exchange: WireExchange }) {
  const data = known();
  const at = place.value;
  const open = statusAt(exchange, at) === 'open';
  const { message, answer, text, notices, asks, failures } = exchange;
  const until = open ? now.value : (exchange.endAt ?? exchange.at);
  const door = data.doorOf(exchange.connection);
  const shown = notices.filter(({ seq }) => seq <= at);
  const failed = failures.filter(({ seq }) => seq <= at);
  const beyond = isUpstream(data.actor(exchange.connection));
  const far = beyond ? 'server' : 'client';
  const linked: readonly (readonly [string, readonly WireExchange[]])[] = [
    ['Input requests', asks],
    ['Relayed for', exchange.origin ? [exchange.origin] : []],
    ['Relayed as', (exchange.relayed ?? []).filter((other) => !asks.includes(other))],
  ];
  return (
    <article class="what">
      <header>
        <p class="kind">
          <Icon name="exchange" size={14} />
          {exchange.kind}
          <span class="beside">{exchange.direction === 'in' ? `from the ${far}` : `to the ${far}`}</span>
        </p>
        <h2>{exchange.target ?? exchange.method}</h2>
        <p class="stands">
          {exchange.kind === 'notification' ? null : <Outcome exchange={exchange} at={at} />}
          {exchange.kind === 'request' ? (
            <span class="beside">
              {open ? 'for' : 'after'} {duration(until - exchange.at)}
            </span>
          ) : null}
        </p>
      </header>
      {scriptRuns(data, at).some(({ origin }) => origin === exchange.seq) ? (
        <button type="button" class="link" onClick={() => show('script')}>
          its script, calls and journal
        </button>
      ) : null}
      {open ? <Waiting waits={exchangeWaits(data, exchange, at)} /> : null}
      <dl class="facts">
        <div>
          <dt>method</dt>
          <dd class="mono">{exchange.method}</dd>
        </div>
        <div>
          <dt>{far}</dt>
          <dd>
            {beyond ? null : exchange.client} <ActorLink address={door} />
          </dd>
        </div>
        {exchange.servedBy === undefined ? null : (
          <div>
            <dt>served by</dt>
            <dd>
              <ActorLink address={exchange.servedBy} />
            </dd>
          </div>
        )}
        {exchange.hop ? (
          <div>
            <dt>{exchange.hop.way === 'to' ? 'forwarded to' : 'arrived from'}</dt>
            <dd class="mono">{hopName(exchange.hop)}</dd>
          </div>
        ) : null}
        <div>
          <dt>at</dt>
          <dd>
            <At at={exchange.at} />
          </dd>
        </div>
        <div>
          <dt>size</dt>
          <dd>
            {bytes(exchange.bytes)}
            {exchange.answerBytes === undefined ? '' : ` + ${bytes(exchange.answerBytes)} response`}
          </dd>
        </div>
      </dl>
      <p class="buttons">
        {exchange.direction === 'in' && message !== undefined ? (
          <button type="button" onClick={() => void copy(curlOf(exchange), say)}>
            <Icon name="copy" size={13} /> Copy as curl
          </button>
        ) : null}
        <button
          type="button"
          onClick={() =>
            void copy(
              JSON.stringify(
                { request: message ?? text, notifications: shown.map((notice) => notice.message), answer },
                null,
                2,
              ),
              say,
            )
          }
        >
          <Icon name="copy" size={13} /> Copy as JSON
        </button>
        <button type="button" onClick={() => select({ exchange: exchange.key, record: exchange.seq })}>
          Effects
        </button>
      </p>
      {failed.length === 0 ? null : (
        <Section title="Failure">
          {failed.map(({ seq, error, incident }) => (
            <div key={seq} class="failure">
              <pre>{error}</pre>
              {incident === undefined ? null : <p class="beside">incident {incident} in the log</p>}
            </div>
          ))}
        </Section>
      )}
      {message === undefined ? null : (
        <Section title={exchange.kind === 'request' ? 'Request' : 'Message'}>
          <Json value={message} open={4} />
        </Section>
      )}
      {text === undefined ? null : (
        <Section title="Text">
          <pre>{text}</pre>
        </Section>
      )}
      {linked.map(([title, others]) => {
        const before = others.filter(({ seq }) => seq <= at);
        return before.length === 0 ? null : (
          <Section key={title} title={title}>
            <ul class="chain">
              {before.map((other) => (
                <li key={other.key}>
                  <button type="button" class="moment" onClick={() => select({ exchange: other.key })}>
                    <Outcome exchange={other} at={at} />
                    <span>{other.target ?? other.method}</span>
                    {other.connection === exchange.connection ? null : (
                      <span class="beside">{doorName(data, other.connection)}</span>
                    )}
                  </button>
                </li>
              ))}
            </ul>
          </Section>
        );
      })}
      {shown.length === 0 ? null : (
        <Section title="Notifications">
          {shown.map((notice) => (
            <Json key={notice.seq} value={notice.message} open={2} />
          ))}
        </Section>
      )}
      {answer === undefined || open ? null : (
        <Section title="Response">
          <Json value={answer} open={4} />
        </Section>
      )}
    </article>
  );
}
