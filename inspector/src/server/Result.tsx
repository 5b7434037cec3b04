/** The result of a call: texts, images, sounds, links, resources, structured content, and the JSON on demand. */
import { useState } from 'preact/hooks';
import type { CallResult, ResultBlock } from '../../../src/inspector/calls/call-messages.ts';
import type { Plain } from '../../../src/inspector/frames.ts';
import { isRecord } from '../../../src/inspector/model/plain-values.ts';
import { Icon } from '../parts/icons.tsx';
import { Json } from '../parts/Json.tsx';
import { copy, save } from '../parts/parts.tsx';
import { bytes } from '../parts/time.ts';
import { known, say } from '../store/state.ts';
import { Link } from './Link.tsx';
import { shown } from './offers.ts';

/** Characters of a text that are shown before "more" is chosen. */
const MUCH = 8_000;

export function Result({ result: { description, blocks, structured, raw, cut } }: { readonly result: CallResult }) {
  const [json, setJson] = useState(false);
  return (
    <div class="result">
      {cut ? <p class="note">The result is too large to be shown completely. Parts of it are left out.</p> : null}
      {description === undefined ? null : <p class="beside">{description}</p>}
      {json ? (
        <Json value={raw} open={4} />
      ) : (
        <>
          {structured === undefined ? null : (
            <div class="block">
              <p class="block-kind">structured content</p>
              <Json value={structured} open={3} />
            </div>
          )}
          {blocks.map(({ role, note, block }, index) => (
            <div class="block" key={index}>
              {role === undefined && note === undefined ? null : (
                <p class="block-kind">
                  {role === undefined ? null : <b>{role}</b>} {note}
                </p>
              )}
              {block.type === 'text' && isSame(block.text, structured) ? (
                <p class="beside">The text is the same, as JSON.</p>
              ) : (
                <Block block={block} />
              )}
            </div>
          ))}
          {blocks.length === 0 && structured === undefined ? <Json value={raw} open={3} /> : null}
        </>
      )}
      <p class="result-acts">
        <button type="button" class="link" aria-pressed={json} onClick={() => setJson(!json)}>
          {json ? 'Show the content' : 'Show the JSON'}
        </button>
        <button type="button" class="link" onClick={() => void copy(JSON.stringify(raw, null, 2), say)}>
          Copy the JSON
        </button>
      </p>
    </div>
  );
}

/** Tools repeat structured content as text, for clients that read no other (MCP tools, "Structured Content"). */
function isSame(text: string, structured: Plain | undefined): boolean {
  const json = structured === undefined ? undefined : jsonIn(text);
  return json !== undefined && JSON.stringify(json) === JSON.stringify(structured);
}

function Block({ block }: { readonly block: ResultBlock }) {
  switch (block.type) {
    case 'text':
      return <Text text={block.text} />;
    case 'image':
      return (
        <figure>
          <img src={`data:${block.mimeType};base64,${block.data}`} alt={`${block.mimeType} from the server`} />
          <figcaption class="beside">
            {block.mimeType} · {bytes(block.bytes)}
          </figcaption>
        </figure>
      );
    case 'audio':
      return (
        <figure>
          {/* biome-ignore lint/a11y/useMediaCaption: the sound of a server has none. */}
          <audio controls src={`data:${block.mimeType};base64,${block.data}`} />
          <figcaption class="beside">
            {block.mimeType} · {bytes(block.bytes)}
          </figcaption>
        </figure>
      );
    case 'binary':
      return (
        <p>
          {bytes(block.bytes)} of <span class="mono">{block.mimeType}</span>{' '}
          {block.data === undefined ? (
            <span class="beside">too large to be sent to this page</span>
          ) : (
            <SaveBytes data={block.data} />
          )}
        </p>
      );
    case 'link':
      return (
        <p>
          <Icon name="outward" size={13} /> {block.name} <Address uri={block.uri} />{' '}
          <span class="beside">{block.description}</span>
        </p>
      );
    case 'resource':
      return (
        <>
          <p class="block-kind">
            <Address uri={block.uri} />
          </p>
          <Block block={block.inside} />
        </>
      );
    case 'other':
      return <Json value={block.value} open={3} />;
  }
}

/** The address of a resource: a link to its page here, if the server lists it. */
function Address({ uri }: { readonly uri: string }) {
  if (!known().catalogue?.resources.some(({ name }) => name === uri)) return <Link to={uri} />;
  return (
    <button
      type="button"
      class="link address mono"
      onClick={() => {
        shown.value = { kind: 'resource', name: uri };
      }}
    >
      {uri}
    </button>
  );
}

function SaveBytes({ data }: { readonly data: string }) {
  return (
    <button
      type="button"
      class="link"
      onClick={() => {
        const binary = atob(data);
        // As bytes of no type: the browser opens none of it.
        save(
          'result.bin',
          new Blob([Uint8Array.from(binary, (byte) => byte.charCodeAt(0))], { type: 'application/octet-stream' }),
        );
      }}
    >
      save
    </button>
  );
}

function Text({ text }: { readonly text: string }) {
  const [whole, setWhole] = useState(text.length <= MUCH);
  const [tree, setTree] = useState(true);
  const json = jsonIn(text);
  return (
    <>
      {json !== undefined && tree ? <Json value={json} open={2} /> : <pre>{whole ? text : text.slice(0, MUCH)}</pre>}
      {json === undefined && !whole ? (
        <button type="button" class="link" onClick={() => setWhole(true)}>
          {(text.length - MUCH).toLocaleString('en')} more characters
        </button>
      ) : null}
      {json === undefined ? null : (
        <button type="button" class="link block-turn" onClick={() => setTree(!tree)}>
          {tree ? 'as text' : 'as a tree'}
        </button>
      )}
    </>
  );
}

/** A text that is a JSON object or list. */
function jsonIn(text: string): Plain | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    const value: Plain = JSON.parse(text);
    return isRecord(value) || Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
