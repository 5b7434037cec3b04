/** The header: the server's name, the connection, the load, and the controls of time. */
import { useRef } from 'preact/hooks';
import { LIVE } from '../../../src/inspector/model/index.ts';
import { Icon } from '../parts/icons.tsx';
import { At, Tool } from '../parts/parts.tsx';
import { plural } from '../parts/time.ts';
import { backToLive, hasServer } from '../store/source.ts';
import {
  brush,
  connection,
  cursor,
  filterText,
  goHome,
  goLive,
  known,
  mark,
  now,
  step,
  togglePause,
} from '../store/state.ts';
import { theme, toggleTheme } from '../store/theme.ts';
import { ExportMenu } from './ExportMenu.tsx';
import { helpOpen, toggleMark } from './keys.ts';
import { PaneTools } from './panes.tsx';

export function Header() {
  const { hello } = known();
  return (
    <header class="header">
      <h1>
        <button type="button" class="logo" title="Overview" onClick={goHome}>
          <Icon name="server" size={15} />
          <span>{hello?.server.title ?? hello?.server.name ?? 'troupe'}</span>
          {hello ? <small>{[hello.server.version, hello.node].filter(Boolean).join(' · ')}</small> : null}
        </button>
      </h1>
      <Status />
      <Counts />
      <Filter />
      <div class="tools" role="toolbar" aria-label="time">
        <Tool icon="back" label="Previous record" hint="←" onClick={() => step(-1)} />
        <Tool
          icon={cursor.value === LIVE ? 'pause' : 'play'}
          label={cursor.value === LIVE ? 'Pause' : 'Resume'}
          hint="Space"
          onClick={togglePause}
        />
        <Tool icon="forth" label="Next record" hint="→" onClick={() => step(1)} />
        <Tool
          icon="mark"
          label={mark.value === undefined ? 'Mark this moment for comparison' : 'Remove the mark'}
          hint="M"
          pressed={mark.value !== undefined}
          onClick={toggleMark}
        />
      </div>
      <PaneTools />
      <div class="tools">
        <ExportMenu />
        <Tool icon="theme" label={theme() === 'dark' ? 'Light theme' : 'Dark theme'} hint="T" onClick={toggleTheme} />
        <Tool
          icon="help"
          label="Keys and signs"
          hint="?"
          onClick={() => {
            helpOpen.value = true;
          }}
        />
      </div>
    </header>
  );
}

function Status() {
  const stands = connection.value;
  if (stands.state === 'recording')
    return (
      <span class="status recording">
        <span class="status-sign square" aria-hidden="true" />
        recording
        {hasServer() ? (
          <button type="button" class="link" onClick={backToLive}>
            back to the server
          </button>
        ) : null}
      </span>
    );
  if (cursor.value !== LIVE)
    return (
      <button type="button" class="status paused" title="Back to live (L)" onClick={goLive}>
        <span class="status-sign bars" aria-hidden="true" />
        at <At at={known().timeAt(cursor.value)} />
      </button>
    );
  const words = { connecting: 'connecting', live: 'live', lost: 'lost', refused: 'refused', ended: 'ended' };
  return (
    <span class={`status ${stands.state}`} role="status">
      <span class="status-sign disc" aria-hidden="true" />
      {words[stands.state]}
    </span>
  );
}

function Counts() {
  const { actors, causes } = known();
  let sessions = 0;
  let living = 0;
  for (const line of actors.values()) {
    if (!line.aliveAt(cursor.value)) continue;
    living += 1;
    if (line.kind === 'session') sessions += 1;
  }
  const rate = Math.round(causes.between(now.value - 2_000, now.value) / 2);
  return (
    <p class="counts">
      <span>{plural(sessions, 'session')}</span>
      <span>{plural(living, 'actor')}</span>
      <span class="rate">{rate.toLocaleString('en')} records/s</span>
    </p>
  );
}

function Filter() {
  const box = useRef<HTMLInputElement>(null);
  return (
    <search class="filter">
      <Icon name="search" size={14} />
      <input
        id="filter"
        ref={box}
        type="search"
        aria-label="filter"
        placeholder="filter   type:tools/call status:error actor:…"
        spellcheck={false}
        autocomplete="off"
        value={filterText.value}
        onInput={({ currentTarget }) => {
          filterText.value = currentTarget.value;
        }}
        onKeyDown={({ key }) => {
          // Chromium empties a search box without an input event.
          if (key === 'Escape') filterText.value = '';
        }}
      />
      {brush.value === undefined ? (
        <span class="key">/</span>
      ) : (
        <button
          type="button"
          class="chip"
          title="Show all times"
          onClick={() => {
            brush.value = undefined;
          }}
        >
          <At at={brush.value.from} /> – <At at={brush.value.to} />
          <Icon name="close" size={12} />
        </button>
      )}
    </search>
  );
}
