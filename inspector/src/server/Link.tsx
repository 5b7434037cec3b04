/** A link out of the page. Its whole address is shown, and a person opens it: the page itself loads nothing. */

const OPENED: ReadonlySet<string> = new Set(['http:', 'https:']);

export function Link({ to }: { readonly to: string }) {
  const protocol = URL.canParse(to) ? new URL(to).protocol : '';
  if (!OPENED.has(protocol)) return <span class="address mono">{to}</span>;
  return (
    <a class="link address mono" href={to} target="_blank" rel="noopener noreferrer">
      {to}
    </a>
  );
}
