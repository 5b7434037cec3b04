/** An error boundary: a failing part shows its error and a button to retry, and the rest of the page stays. */
import { Component, type ComponentChildren } from 'preact';

export interface GuardedProps {
  /** The display name of the part. */
  readonly what: string;
  readonly children: ComponentChildren;
}

export class Guarded extends Component<GuardedProps, { readonly failed: string | undefined }> {
  override state = { failed: undefined };

  static override getDerivedStateFromError(error: unknown): { readonly failed: string } {
    return { failed: error instanceof Error ? error.message : String(error) };
  }

  override componentDidCatch(error: unknown): void {
    console.error(error);
  }

  override render({ what, children }: GuardedProps, { failed }: { readonly failed: string | undefined }) {
    if (failed === undefined) return children;
    return (
      <div class="none" role="alert">
        <p>
          {what} cannot be shown: {failed}
        </p>
        <p>
          <button type="button" class="link" onClick={() => this.setState({ failed: undefined })}>
            Retry
          </button>
        </p>
      </div>
    );
  }
}
