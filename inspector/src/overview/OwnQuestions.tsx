/** Questions of the server about calls of this page, with the forms of their answers. */
import { useEffect } from 'preact/hooks';
import { watchCalls } from '../server/calls.ts';
import { Questions } from '../server/Questions.tsx';
import '../server/server.css';

export function OwnQuestions() {
  useEffect(watchCalls, []);
  return <Questions />;
}
