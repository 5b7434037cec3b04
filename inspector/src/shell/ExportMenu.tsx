/** Exports the model as JSON, for this page and for tools, or as one HTML file that opens without a server. */
import { useRef } from 'preact/hooks';
import { recordingOfModel } from '../../../src/inspector/model/index.ts';
import { withPictures } from '../chart/layout/carried.ts';
import { allPictures } from '../chart/layout/start.ts';
import { Icon } from '../parts/icons.tsx';
import { save } from '../parts/parts.tsx';
import { ask } from '../store/api.ts';
import { hasServer, openRecording } from '../store/source.ts';
import { connection, known, say } from '../store/state.ts';

export function ExportMenu() {
  const menu = useRef<HTMLDetailsElement>(null);
  const file = useRef<HTMLInputElement>(null);
  const done = (): void => {
    if (menu.current) menu.current.open = false;
  };
  const name = `${known().hello?.server.name ?? 'troupe'}-recording`;
  const json = (): void => {
    save(`${name}.json`, new Blob([JSON.stringify(recordingOfModel(known()))], { type: 'application/json' }));
    done();
  };
  const html = async (): Promise<void> => {
    done();
    try {
      const response = await ask('api/export');
      // The exported page has no worker for layouts: it contains the current ones.
      const page = withPictures(await response.text(), allPictures());
      save(`${name}.html`, new Blob([page], { type: 'text/html' }));
    } catch (error) {
      say(`The page could not be exported: ${error instanceof Error ? error.message : String(error)}`);
    }
  };
  return (
    <details
      class="menu"
      ref={menu}
      onKeyDown={(event) => {
        if (event.key === 'Escape') done();
      }}
    >
      <summary class="tool" aria-label="Export and import" title="Export and import">
        <Icon name="out" />
      </summary>
      <div class="menu-items">
        <button type="button" onClick={json}>
          Export as JSON
        </button>
        {hasServer() && connection.value.state !== 'recording' ? (
          <button type="button" onClick={() => void html()}>
            Export as one HTML file
          </button>
        ) : null}
        <button type="button" onClick={() => file.current?.click()}>
          Open a recording…
        </button>
        <input
          ref={file}
          type="file"
          accept=".json,.jsonl,application/json"
          aria-label="a recording"
          hidden
          onChange={async ({ currentTarget }) => {
            const [chosen] = currentTarget.files ?? [];
            currentTarget.value = '';
            done();
            if (chosen) openRecording(await chosen.text(), chosen.name);
          }}
        />
      </div>
    </details>
  );
}
