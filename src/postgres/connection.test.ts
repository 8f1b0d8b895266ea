import { expect, test } from 'vitest'
import { HoldfastError } from '../errors/errors.ts'
import { withoutPassword } from '../errors/without-password.ts'
import { checkedUrl, isConnectionError, isNobodysFault, isRetryable } from './connection.ts'
import { describe as explain } from './error-message.ts'

const url = 'postgres://me:secret@db.example:5432/jobs'
const coded = (code: string, message = 'broken') => Object.assign(new Error(message), { code })

test.for(['', 'jobs', 'postgres://me:12/34@db/jobs', 'mysql://me@db/jobs', 'http://db', 'localhost:5432'])(
  '%j is refused as a database URL',
  (wrong) => {
    expect(() => checkedUrl(wrong)).toThrow(expect.objectContaining({ code: 'config_invalid' }))
  },
)

test('a URL is never shown with its password', () => {
  expect(withoutPassword(url)).toBe('postgres://me:***@db.example:5432/jobs')
  expect((explain(coded('ECONNREFUSED'), url) as Error).message).not.toContain('secret')
  expect(() => checkedUrl('mysql://me:secret@db/jobs')).toThrow(
    expect.objectContaining({ message: expect.not.stringContaining('secret') }),
  )
})

test.for(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ENOTFOUND', '57P01', '57P03', '08006', '53300'])(
  '%s says that the connection broke',
  (code) => {
    expect(isConnectionError(coded(code))).toBe(true)
    expect(explain(coded(code), url)).toMatchObject({
      code: code === '53300' ? 'database_overloaded' : 'database_unreachable',
    })
    expect(isConnectionError(explain(coded(code), url))).toBe(true)
  },
)

test.for([
  'Connection terminated unexpectedly',
  'Query read timeout',
  'timeout exceeded when trying to connect',
  'timeout expired',
])('%j says that the connection broke', (message) => {
  expect(isConnectionError(new Error(message))).toBe(true)
})

test('what the server refuses is no broken connection', () => {
  for (const code of ['23505', '22P02', '42601', '40001']) expect(isConnectionError(coded(code))).toBe(false)
  expect(isConnectionError(new Error('duplicate key'))).toBe(false)
})

/** An error as Postgres sends it. */
const sent = (code: string, severity: string) =>
  Object.assign(coded(code, 'broken'), { severity, routine: 'exec_stmt_raise' })

test.for(['08001', '08006', '57P01', '53300', '58030'])(
  '%s breaks the connection if the server ends it, but not if only a statement failed',
  (code) => {
    for (const severity of ['FATAL', 'PANIC', 'ВАЖНО']) {
      expect(isConnectionError(sent(code, severity))).toBe(true)
      expect(isNobodysFault(explain(sent(code, severity), url))).toBe(true)
    }
    for (const severity of ['ERROR', 'FEHLER', 'ОШИБКА']) {
      const failed = sent(code, severity)
      expect([isConnectionError(failed), isNobodysFault(failed)]).toEqual([false, false])
      expect((explain(failed, url) as Error).message).not.toContain('connection')
    }
  },
)

test('a pooler that reports a broken connection as a mere error is believed', () => {
  expect(isConnectionError(Object.assign(coded('08006'), { severity: 'ERROR' }))).toBe(true)
})

test("a full disk is nobody's fault, and a statement that exceeds a limit is", () => {
  for (const code of ['53100', '53200', '53000']) expect(isNobodysFault(sent(code, 'ERROR'))).toBe(true)
  expect(isNobodysFault(sent('53400', 'ERROR'))).toBe(false)
})

test('a deadlock and a failed serialization can be tried again', () => {
  expect(isRetryable(coded('40P01'))).toBe(true)
  expect(isRetryable(coded('40001'))).toBe(true)
  expect(isRetryable(coded('23505'))).toBe(false)
})

test('what keeps us out is told as a sentence with a code', () => {
  expect(explain(coded('28P01'), url)).toMatchObject({
    code: 'database_refused',
    message: expect.stringContaining('password'),
  })
  expect(explain(coded('3D000'), url)).toMatchObject({
    code: 'database_refused',
    message: expect.stringContaining('create it'),
  })
  expect(explain(coded('42P01'), url)).toMatchObject({
    code: 'schema_missing',
    message: expect.stringContaining('holdfast migrate'),
  })
})

test('any other error is passed on as it is', () => {
  const own = new HoldfastError('id_invalid', 'x')
  const other = coded('23505')
  expect([explain(own, url), explain(other, url)]).toEqual([own, other])
})

test.for([
  ['SELF_SIGNED_CERT_IN_CHAIN', 'self-signed certificate in certificate chain', 'sslrootcert'],
  ['CERT_HAS_EXPIRED', 'certificate has expired', 'not trusted'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', "Hostname/IP does not match certificate's altnames", 'host name matches'],
  [
    '28000',
    'no pg_hba.conf entry for host "10.0.0.9", user "me", database "jobs", no encryption',
    'sslmode=verify-full',
  ],
  ['28000', 'no pg_hba.conf entry for host "10.0.0.9", user "me", database "jobs", SSL encryption', 'pg_hba.conf.'],
  ['28000', 'role "me" does not exist', 'Create the role'],
] as const)('%s is a refusal that says what to do: %s', ([code, message, advice]) => {
  expect(explain(coded(code, message), url)).toMatchObject({
    code: 'database_refused',
    message: expect.stringMatching(new RegExp(`db\\.example.*${advice}`)),
  })
})
