/** Resources: text, bytes, several contents, templates with completion, one that changes, one that fails. */
import { Buffer } from 'node:buffer';
import { ErrorCode, ProtocolError, type Server } from 'troupe';
import { ICON, PNG } from './media.ts';

const CITIES: Readonly<Record<string, readonly string[]>> = {
  austria: ['graz', 'linz', 'vienna'],
  france: ['lyon', 'nantes', 'paris'],
  japan: ['kyoto', 'osaka', 'tokyo'],
};

export function addResources(server: Server): void {
  const text = 'This is the content of the static text resource.';
  server.resource(
    'test://static-text',
    {
      name: 'static-text',
      title: 'Static text',
      description: 'A constant text. Clients may cache it for five minutes.',
      mimeType: 'text/plain',
      size: Buffer.byteLength(text),
      annotations: { audience: ['user', 'assistant'], priority: 0.8, lastModified: '2026-01-01T00:00:00Z' },
      icons: [ICON],
      ttlMs: 300_000,
      cacheScope: 'public',
    },
    () => text,
  );

  server.resource(
    'test://static-binary',
    { name: 'static-binary', description: 'An image: one red pixel.', mimeType: 'image/png' },
    () => Buffer.from(PNG, 'base64'),
  );

  server.resource('test://folder', { name: 'folder', description: 'One resource with two contents.' }, () => [
    { uri: 'test://folder/a.txt', mimeType: 'text/plain', text: 'A' },
    { uri: 'test://folder/b.png', mimeType: 'image/png', blob: PNG },
  ]);

  server.resource(
    'test://broken',
    { name: 'broken', description: 'Fails on every read. The client sees no details.' },
    () => {
      throw new Error('the password is in this message');
    },
  );

  addTemplates(server);
  addWatched(server);
}

function addTemplates(server: Server): void {
  server.resource(
    'test://template/{id}/data',
    {
      name: 'template-data',
      title: 'Data by id',
      description: 'Data for any id.',
      mimeType: 'application/json',
      complete: { id: (typed) => ['123', '124', '200'].filter((id) => id.startsWith(typed)) },
    },
    ({ variables: { id } }) => JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }),
  );

  server.resource(
    'test://cities/{country}/{city}',
    {
      name: 'cities',
      description: 'A city. Completion suggests cities of the chosen country.',
      mimeType: 'text/plain',
      complete: {
        country: (typed) => Object.keys(CITIES).filter((country) => country.startsWith(typed)),
        city: (typed, { country = '' }) => CITIES[country]?.filter((city) => city.startsWith(typed)) ?? [],
      },
    },
    ({ uri, variables: { country, city } }) => {
      if (!CITIES[String(country)]?.includes(String(city)))
        throw new ProtocolError(ErrorCode.ResourceNotFound, 'Resource not found', { uri });
      return `${city} is in ${country}.`;
    },
  );
}

/** A resource that a tool changes. Subscribed clients are notified. */
function addWatched(server: Server): void {
  const uri = 'test://watched-resource';
  let changes = 0;
  server.resource(uri, { name: 'watched-resource', description: 'A text that changes.', mimeType: 'text/plain' }, () =>
    changes === 0 ? 'Watched resource content.' : `Watched resource content, changed ${changes} times.`,
  );
  server.tool('change_watched_resource', { description: `Changes ${uri}.` }, () => {
    changes += 1;
    server.resourceUpdated(uri);
    return `Changed ${uri}.`;
  });
}
