import { describe, vi } from 'vitest'
import { ask, call, callEach } from './cli/command.ts'
import { expect, test, until } from './fixtures.ts'
import { bodyOf, broken, echo, hook, near, settled, verify } from './webhooks/hooks.ts'
import { closedPort } from './webhooks/receiver.ts'

// each call is a process of its own, and other tests run beside
vi.setConfig({ testTimeout: 60_000 })

const nobody = '01890a5d-ac96-774b-bcce-b302099a8057'
const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

/** How a command is called that may reach receivers on this machine. */
function at(url: string) {
  return { env: { HOLDFAST_URL: url, HOLDFAST_WEBHOOK_ALLOW: '127.0.0.1/32' } }
}

interface Added {
  endpoint: { id: string; secret: string; types: string[]; oldSecretUntil: string | null }
}

describe('endpoints', () => {
  test('an endpoint is created, shows its secret once, and is listed and shown without it', async ({ hf, url }) => {
    const to = await hook()
    const where = at(url)
    expect((await call(['webhooks', 'list'], where)).stdout).toMatch(/^No endpoints match\. Create one with/)
    const flags = [
      '--tenant',
      'acme',
      '--types',
      'job.failed, job.finished',
      '--header',
      'x-key: a:b',
      '--note',
      'Bill',
    ]
    const added = await call(['webhooks', 'add', `${to.url}/hooks`, ...flags], where)
    expect(added).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('Save the secret now; it is shown only once'),
    })
    const [, id = ''] = /^endpoint +(\S+)$/m.exec(added.stdout) ?? []
    const [, made = ''] = /^secret +(whsec_\S+)$/m.exec(added.stdout) ?? []
    expect(made).not.toBe('')
    expect(await hf.webhooks.get(id)).toMatchObject({
      url: `${to.url}/hooks`,
      tenant: 'acme',
      types: expect.arrayContaining(['job.failed', 'job.finished']),
      headers: { 'x-key': 'a:b' },
      note: 'Bill',
    })
    const other = await ask<Added>(['webhooks', 'add', to.url, '--secret', secret], where)
    expect(other.endpoint).toMatchObject({ secret, tenant: 'default' })

    const list = await call(['webhooks', 'list', '--tenant', 'acme'], where)
    expect(list.stdout).toMatch(/^ID +TENANT +URL +TYPES +STATE +NOTE\n/)
    expect(list.stdout).toMatch(new RegExp(`^${id} +acme +${to.url}/hooks +job\\.\\w+, job\\.\\w+ +on +Bill$`, 'm'))
    expect(await ask(['webhooks', 'list', '-n', '1'], where)).toMatchObject({
      endpoints: [{ id: other.endpoint.id }],
      next: other.endpoint.id,
    })
    const shown = await call(['webhooks', 'show', id.slice(-8)], where)
    expect(shown.stdout).toMatch(/^headers +x-key$/m)
    expect(shown.stdout).toContain('\nNo deliveries yet.\n')
    expect(await ask(['webhooks', 'show', id], where)).toMatchObject({ endpoint: { id }, deliveries: [] })
    for (const { stdout } of [list, shown]) expect(stdout).not.toMatch(/whsec_|a:b/)
  })

  test('an endpoint is changed, and what is not given stays', async ({ hf, url }) => {
    const where = at(url)
    const { id } = await hf.webhooks.create({ url: 'https://example.com/a', headers: { a: '1' } })
    const changed = await call(
      ['webhooks', 'update', id, '--to', 'https://example.com/b', '--types', 'job.*', '--note', 'Till'],
      where,
    )
    expect(changed.stdout).toMatch(/^url +https:\/\/example\.com\/b\ntypes +job\.\*$/m)
    expect(changed.stdout).not.toContain('whsec_')
    expect(await hf.webhooks.get(id)).toMatchObject({ headers: { a: '1' }, note: 'Till' })
    expect(await ask(['webhooks', 'update', id, '--header', 'b:2'], where)).toMatchObject({
      endpoint: { url: 'https://example.com/b', headers: { b: '2' } },
    })
    expect(await ask(['webhooks', 'update', id, '--no-headers'], where)).toMatchObject({ endpoint: { headers: {} } })
  })

  test('a secret is rotated: both sign for a while, or only the new one', async ({ url }) => {
    const to = await hook()
    const where = at(url)
    const { endpoint } = await ask<Added>(['webhooks', 'add', to.url], where)
    const rotated = await call(['webhooks', 'rotate', endpoint.id, '--grace', '2h'], where)
    const [, fresh = ''] = /^secret +(whsec_\S+)$/m.exec(rotated.stdout) ?? []
    expect(rotated.stdout).toMatch(/^signed +with the previous secret too, until \d{4}-/m)
    expect(rotated.stderr).toContain('Save the secret now; it is shown only once')
    expect((await call(['webhooks', 'test', endpoint.id], where)).code).toBe(0)
    for (const one of [endpoint.secret, fresh]) verify(one, to.received[0])
    const last = await ask<Added>(['webhooks', 'rotate', endpoint.id, '--grace', '0', '--secret', secret], where)
    expect(last.endpoint.secret).toBe(secret)
    expect((await call(['webhooks', 'test', endpoint.id], where)).code).toBe(0)
    verify(secret, to.received[1])
    expect(() => verify(fresh, to.received[1])).toThrow()
  })

  test('an endpoint is switched off, on, and removed', async ({ hf, url }) => {
    const where = at(url)
    const { id } = await hf.webhooks.create({ url: 'https://example.com/a' })
    const off = await call(['webhooks', 'disable', id.slice(-8), '--why', 'It moves house.'], where)
    expect(off.stdout).toBe(`${id}  off\n`)
    expect((await call(['webhooks', 'list'], where)).stdout).toMatch(/ off: It moves house\.$/m)
    expect((await call(['webhooks', 'enable', id], where)).stdout).toMatch(
      new RegExp(`^${id} {2}on\nTo replay what it missed: holdfast webhooks replay --all --endpoint ${id}\n$`),
    )
    expect(await ask(['webhooks', 'disable', id], where)).toMatchObject({
      endpoint: { id, disabledWhy: 'Disabled manually.' },
    })
    expect(await ask(['webhooks', 'enable', id], where)).toMatchObject({ endpoint: { id, disabledAt: null } })
    expect((await call(['webhooks', 'remove', id], where)).stdout).toBe(`${id}  removed\n`)
    const other = await hf.webhooks.create({ url: 'https://example.com/a' })
    expect(await ask(['webhooks', 'remove', other.id], where)).toEqual({ removed: other.id })
    expect(await hf.webhooks.list()).toEqual([])
  })

  test('a sample is sent, signed, and what went wrong is told', async ({ url }) => {
    const where = at(url)
    const to = await hook([200, { status: 500, body: 'out of\u001b[31m order' }, 403])
    const { endpoint } = await ask<Added>(['webhooks', 'add', to.url, '--secret', secret], where)
    const good = await call(['webhooks', 'test', endpoint.id], where)
    expect(good).toMatchObject({ code: 0, stderr: '' })
    expect(good.stdout).toMatch(/^delivered: the receiver answered 200 in \d+(\.\d)? m?s\.\n$/)
    verify(secret, to.received[0])
    const later = await call(['webhooks', 'test', endpoint.id], where)
    expect(later).toMatchObject({ code: 1, stdout: '' })
    expect(later.stderr).toMatch(
      /^not delivered \(.* m?s\): The receiver answered 500\.\nResponse: out of.* order\nA real del/,
    )
    const never = await call(['webhooks', 'test', endpoint.id, '--json'], where)
    expect(JSON.parse(never.stdout)).toMatchObject({ kind: 'permanent', status: 403 })
    expect(never.code).toBe(1)
    const unreachable = await ask<Added>(['webhooks', 'add', `http://127.0.0.1:${await closedPort()}/`], where)
    expect(await call(['webhooks', 'test', unreachable.endpoint.id], where)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('The connection was refused.'),
    })
    // the network is refused where the setting is not there, although it was allowed when the endpoint was made
    expect(await call(['webhooks', 'test', endpoint.id], { env: { HOLDFAST_URL: url } })).toMatchObject({ code: 1 })
    expect(to.received).toHaveLength(3)
  })
})

describe('deliveries', () => {
  test('deliveries are listed, belong to their job, and are replayed one by one or all at once', async ({
    open,
    url,
  }) => {
    const where = at(url)
    const to = await hook([400, 400, 200])
    const hf = await open({ ...near, jobs: [echo, broken] })
    const { endpoint } = await ask<Added>(['webhooks', 'add', to.url, '--types', 'job.finished,job.failed'], where)
    expect((await call(['webhooks', 'deliveries', '--endpoint', endpoint.id], where)).stdout).toBe(
      'No deliveries match.\n',
    )
    await hf.work()
    const handle = await hf.submit(echo, 1)
    const other = await hf.submit(broken, null)
    const dead = await settled(hf, 'dead', 2)
    const mine = dead.find(({ job }) => job === handle.id)
    const table = await call(['webhooks', 'deliveries', '--state', 'dead'], where)
    expect(table.stdout).toMatch(/^ID +EVENT +JOB +ENDPOINT +STATE +TRIES +STATUS +TOOK +AGE +ERROR\n/)
    expect(table.stdout).toMatch(
      new RegExp(
        `^${mine?.id} +job\\.finished +${handle.id.slice(-8)} +${endpoint.id.slice(-8)} +dead +1 +400 .* The receiver answered 400\\.$`,
        'm',
      ),
    )
    expect(await ask(['webhooks', 'deliveries', '--job', handle.id, '-n', '1'], where)).toMatchObject({
      deliveries: [{ id: mine?.id, state: 'dead', status: 400 }],
      next: mine?.id,
    })
    const show = await call(['show', other.id], where)
    expect(show.stdout).toMatch(/\n\nwebhooks\nID +EVENT .*\n.* job\.failed .* dead .*\n$/)
    expect(await ask(['show', other.id], where)).toMatchObject({ deliveries: [{ job: other.id, state: 'dead' }] })
    const shown = await call(['webhooks', 'show', endpoint.id], where)
    expect(shown.stdout).toMatch(/\n\ndeliveries\nID +EVENT /)

    const one = await call(['webhooks', 'replay', mine?.id.slice(-12) ?? ''], where)
    expect(one.stdout).toBe(`${mine?.id}  will be resent\n`)
    await settled(hf, 'delivered', 1)
    const all = ['webhooks', 'replay', '--all', '--endpoint', endpoint.id, '--since', '1h']
    expect((await call(all, where)).stdout).toBe('Resending 1 delivery.\n')
    await settled(hf, 'delivered', 2)
    expect((await call(all, where)).stdout).toBe('No dead letters match.\n')
    expect(await ask(['webhooks', 'replay', mine?.id ?? ''], where)).toEqual({ replayed: 1, ids: [mine?.id] })
    await to.got(5)
    await settled(hf, 'delivered', 2)
    expect(await ask(['webhooks', 'replay', '--all', '--delivered'], where)).toEqual({ replayed: 2 })
    await to.got(7)
    expect(new Set(to.told().map(({ id }) => id)).size).toBe(2)
  })

  test('a delivery that is still to be sent cannot be replayed', async ({ open, url }) => {
    const to = await hook([{ status: 503, headers: { 'retry-after': '3600' } }])
    const hf = await open({ ...near, jobs: [echo] })
    await hf.webhooks.create({ url: to.url })
    await hf.work()
    await hf.submit(echo, 1)
    const [pending] = await until(async () => {
      const all = await hf.webhooks.deliveries({ state: 'pending' })
      return all[0]?.status === 503 && all
    })
    expect((await call(['webhooks', 'deliveries'], at(url))).stdout).toMatch(/ pending \(retry in \d+ min\) +1 +503 /)
    expect(await call(['webhooks', 'replay', pending?.id ?? ''], at(url))).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^error delivery_pending: /),
    })
  })

  test('a job that is submitted with a webhook is told of, signed with its secret', async ({ open, url }) => {
    const to = await hook()
    const hf = await open({ ...near, jobs: [echo] })
    await hf.work()
    const submitted = await ask<{ id: string }>(
      ['submit', 'echo', '1', '--webhook', to.url, '--webhook-secret', secret],
      at(url),
    )
    const [received] = await to.got(1)
    verify(secret, received)
    expect(received && bodyOf(received)).toMatchObject({ type: 'job.finished', data: { job: { id: submitted.id } } })
    await settled(hf, 'delivered')
    expect((await call(['show', submitted.id], at(url))).stdout).toMatch(/ job\.finished .* the job's +delivered /)
  })
})

describe('wrong use', () => {
  const wrong: [name: string, args: string[], code: number, says: RegExp][] = [
    ['no command', ['webhooks'], 2, /^Usage: holdfast webhooks /],
    ['a mistyped command', ['webhooks', 'lits'], 2, /Unknown command 'lits' \(Did you mean list\?\)/],
    ['a URL that is none', ['webhooks', 'add', 'hello'], 2, /^error webhook_url_invalid: /],
    ['an address that is not public', ['webhooks', 'add', 'https://10.0.0.1/'], 2, /^error webhook_url_refused: /],
    ['a wrong secret', ['webhooks', 'add', 'https://a.com/', '--secret', 'x'], 2, /^error webhook_secret_invalid: /],
    ['a wrong type', ['webhooks', 'add', 'https://a.com/', '--types', 'job.x'], 2, /^error event_type_unknown: /],
    [
      'a header without a colon',
      ['webhooks', 'add', 'https://a.com/', '--header', 'x'],
      2,
      /--header takes name:value/,
    ],
    ['a header that is ours', ['webhooks', 'add', 'https://a.com/', '--header', 'host:x'], 2, /^error webhook_header/],
    ['to show no endpoint', ['webhooks', 'show', nobody], 1, /^error endpoint_not_found: There is no webhook endpoint/],
    ['an id that is none', ['webhooks', 'show', 'x'], 1, /^error endpoint_not_found: There is no webhook endpoint "x"/],
    ['to change nothing', ['webhooks', 'update', nobody], 2, /Nothing to change: pass --to, --types, --header/],
    ['to change no endpoint', ['webhooks', 'update', nobody, '--note', 'x'], 1, /^error endpoint_not_found: /],
    ['a grace that is none', ['webhooks', 'rotate', nobody, '--grace', 'x'], 2, /--grace takes a duration/],
    ['to rotate no endpoint', ['webhooks', 'rotate', nobody], 1, /^error endpoint_not_found: /],
    ['to enable no endpoint', ['webhooks', 'enable', nobody], 1, /^error endpoint_not_found: /],
    ['to disable no endpoint', ['webhooks', 'disable', 'abcdef12'], 1, /^error endpoint_not_found: /],
    ['to remove no endpoint', ['webhooks', 'remove', nobody], 1, /^error endpoint_not_found: /],
    ['to test no endpoint', ['webhooks', 'test', nobody], 1, /^error endpoint_not_found: /],
    ['a state that is none', ['webhooks', 'deliveries', '--state', 'daed'], 2, /"daed" is not a delivery state; did/],
    ['the deliveries of no endpoint', ['webhooks', 'deliveries', '--endpoint', nobody], 1, /^error endpoint_not_found/],
    ['nothing to replay', ['webhooks', 'replay'], 2, /Choose what to resend: a delivery id or --all/],
    ['two things to replay', ['webhooks', 'replay', nobody, '--all'], 2, /Choose what to resend/],
    ['a replay of some of one', ['webhooks', 'replay', nobody, '--since', '1h'], 2, /require --all/],
    ['to replay no delivery', ['webhooks', 'replay', nobody], 1, /^error delivery_not_found: /],
    [
      'to replay for no endpoint',
      ['webhooks', 'replay', '--all', '--endpoint', nobody],
      1,
      /^error endpoint_not_found/,
    ],
    ['a webhook without a secret', ['submit', 'x', '--webhook', 'https://a.com/'], 2, /--webhook and --webhook-secret/],
  ]
  test('what is wrong is refused with a sentence', async ({ url }) => {
    const answers = await callEach(
      wrong.map(([, args]) => args),
      { env: { HOLDFAST_URL: url } },
    )
    for (const [index, [name, , code, says]] of wrong.entries()) {
      expect(answers[index]?.stderr, name).toMatch(says)
      expect(answers[index], name).toMatchObject({ code, stdout: '' })
    }
  }, 120_000)

  test('with --json an error is JSON, and no message repeats a secret', async ({ url }) => {
    const args = ['webhooks', 'add', 'https://a.com/', '--secret', 'hunter2', '--json']
    const { code, stdout, stderr } = await call(args, { env: { HOLDFAST_URL: url } })
    expect(JSON.parse(stderr)).toMatchObject({ error: { code: 'webhook_secret_invalid' } })
    expect(stderr).not.toContain('hunter2')
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  })
})
