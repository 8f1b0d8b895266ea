import type { Config } from '../config/config.ts'
import type { Holdfast } from '../engine/engine.ts'
import { messageOf } from '../errors/errors.ts'
import { withClient } from './client.ts'
import { codeOf } from './failure.ts'
import { pickJob } from './pick-job.ts'
import { complain, paint, print } from './terminal.ts'

/** The result for one id. */
interface Answer {
  id: string
  ok: boolean
  error?: { code: string; message: string }
}

/** Does something to each job in turn, and prints a line for each. A failure does not stop the others. */
export async function forEachJob(
  config: Config,
  words: readonly string[],
  how: { done: string; isJson: boolean; act: (hf: Holdfast, id: string) => Promise<void> },
): Promise<void> {
  const answers = await withClient(config, async (hf) => {
    const all: Answer[] = []
    for (const word of new Set(words)) all.push(await answerFor(hf, word, how.act))
    return all
  })
  if (how.isJson) print(JSON.stringify({ results: answers }, null, 2))
  if (!how.isJson) for (const answer of answers) tell(answer, how.done)
  if (answers.some(({ ok }) => !ok)) process.exitCode = 1
}

async function answerFor(
  hf: Holdfast,
  word: string,
  act: (hf: Holdfast, id: string) => Promise<void>,
): Promise<Answer> {
  try {
    const id = await pickJob(hf, word)
    await act(hf, id)
    return { id, ok: true }
  } catch (error) {
    const code = codeOf(error)
    // the database is at fault, not the job: the next id would fail the same way
    if (code.startsWith('database_') || code === 'unexpected') throw error
    return { id: word, ok: false, error: { code, message: messageOf(error) } }
  }
}

function tell({ id, error }: Answer, done: string): void {
  if (error) complain(`${id}  ${paint('red', error.code, process.stderr)}: ${error.message}`)
  if (!error) print(`${id}  ${paint('green', done)}`)
}
