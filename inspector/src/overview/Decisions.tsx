/** What the person who looks decides: the questions to this page and, at the machine of the server, approvals and dead deliveries. */
import { Approvals } from './Approvals.tsx';
import { Deliveries } from './Deliveries.tsx';
import { OwnQuestions } from './OwnQuestions.tsx';

export function Decisions({ remote }: { readonly remote: boolean }) {
  return (
    <>
      {remote ? null : <Approvals />}
      <OwnQuestions />
      {remote ? null : <Deliveries />}
    </>
  );
}
