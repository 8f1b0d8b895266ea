import { connect, defineJob, type Holdfast } from 'holdfast'
import { expect, test } from './fixtures.ts'

const mail = defineJob('mail', { run: () => null })
const id = '01890a5d-ac96-774b-bcce-b302099a8057'

// as JavaScript would call it
type Loose = { [name: string]: (...given: unknown[]) => Promise<unknown> } & Record<
  'events' | 'webhooks' | 'keys' | 'barrier',
  { [name: string]: (...given: unknown[]) => Promise<unknown> }
>

const misspelt: [call: string, ask: (hf: Loose) => unknown, says: string][] = [
  ['submit', (hf) => hf.submit?.(mail, null, { delay: 5 }), 'submit has no option "delay"; did you mean delayMs?'],
  [
    'submit',
    (hf) => hf.submit?.(mail, null, { webhook: { uri: 'x' } }),
    'The option webhook of submit has no option "uri"; did you mean url?',
  ],
  [
    'submitMany',
    (hf) => hf.submitMany?.(mail, [{ input: 1 }, { input: 2, kei: 'k' }]),
    'submitMany has no option "kei"; did you mean key?',
  ],
  ['submitMany', (hf) => hf.submitMany?.(mail, [], { txn: {} }), 'submitMany has no option "txn"; did you mean tx?'],
  [
    'submitMixed',
    (hf) => hf.submitMixed?.([{ job: mail, input: 1, prio: 1 }]),
    'submitMixed has no option "prio"; did you mean priority?',
  ],
  ['cancel', (hf) => hf.cancel?.(id, { why: 'x' }), 'cancel has no option "why"; it takes reason, by, tenant.'],
  ['redo', (hf) => hf.redo?.(id, { form: 'start' }), 'redo has no option "form"; did you mean from?'],
  ['repair', (hf) => hf.repair?.(id, { dryrun: true }), 'repair has no option "dryrun"; did you mean dryRun?'],
  ['list', (hf) => hf.list?.({ states: 'failed' }), 'list has no option "states"; did you mean state?'],
  ['page', (hf) => hf.page?.({ que: 'a' }), 'page has no option "que"; did you mean queue?'],
  ['work', (hf) => hf.work?.({ concurency: 5 }), 'work has no option "concurency"; did you mean concurrency?'],
  ['audit', (hf) => hf.audit?.({ lates: 5 }), 'audit has no option "lates"; did you mean latest?'],
  [
    'subscribe',
    (hf) => hf.events.subscribe?.('g', { type: 'job.*' }, () => {}),
    'events.subscribe has no option "type"; did you mean types?',
  ],
  [
    'replay',
    (hf) => hf.events.replay?.('g', { park: 'all' }),
    'events.replay has no option "park"; did you mean parked?',
  ],
  [
    'webhooks.create',
    (hf) => hf.webhooks.create?.({ url: 'https://example.com', event: 'x' }),
    'webhooks.create has no option "event"; it takes url, types, secret, headers, tenant, items, note.',
  ],
  [
    'webhooks.update',
    (hf) => hf.webhooks.update?.(id, { notes: 'x' }),
    'webhooks.update has no option "notes"; did you mean note?',
  ],
  [
    'keys.create',
    (hf) => hf.keys.create?.({ name: 'me', scope: ['read'], tenant: null }),
    'keys.create has no option "scope"; did you mean scopes?',
  ],
  [
    'barrier.open',
    (hf) => hf.barrier.open?.({ id: 'b', part: 2 }),
    'barrier.open has no option "part"; did you mean parts?',
  ],
]

test.for(misspelt)(
  '%s refuses an option that it does not take, and says which one was meant',
  async ([, ask, says], { hf }) => {
    await expect(ask(hf as unknown as Loose)).rejects.toMatchObject({ code: 'option_invalid', message: says })
  },
)

test('connect, result and watch refuse options that they do not take', async ({ url, hf }) => {
  const options = { url, logLevel: 'silent', pollMS: 5 } as never
  await expect(connect(options)).rejects.toMatchObject({
    message: 'connect has no option "pollMS"; did you mean pollMs?',
  })
  await expect(connect({ url, job: [] } as never)).rejects.toMatchObject({
    message: 'connect has no option "job"; did you mean jobs?',
  })
  const handle = await hf.submit(mail, null)
  await expect(handle.result({ timeoutMs: 5 } as never)).rejects.toMatchObject({
    message: 'result has no option "timeoutMs"; did you mean timeout?',
  })
  expect(() => (hf.events.watch as Holdfast['events']['watch'])({ tennant: 'a' } as never)).toThrow(
    'events.watch has no option "tennant"; did you mean tenant?',
  )
})

test('runAt and delayMs together are refused in a sentence', async ({ hf }) => {
  await expect(hf.submit(mail, null, { runAt: new Date(), delayMs: 5 })).rejects.toMatchObject({
    message: 'Pass either runAt or delayMs, not both.',
  })
})
