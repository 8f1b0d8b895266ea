import { expect, test } from 'vitest'
import { withoutPassword, withoutPasswords } from './without-password.ts'

const shown: [url: string, shown: string][] = [
  ['postgres://me:s3cret@db:5432/jobs', 'postgres://me:***@db:5432/jobs'],
  ['postgres://me:s3@cret@db/jobs', 'postgres://me:***@db/jobs'],
  ['postgres://me:s3/cret@db/jobs', 'postgres://me:***@db/jobs'],
  ['postgres://me:s3?cret#s3@db/jobs', 'postgres://me:***@db/jobs'],
  ['postgres://me:s3:cret@db/jobs', 'postgres://me:***@db/jobs'],
  ['me:s3cret@db/jobs', 'me:***@db/jobs'],
  ['//me:s3cret@db/jobs', '//me:***@db/jobs'],
  ['postgres:me:s3cret@db/jobs', 'postgres:***@db/jobs'],
  [
    'postgres://db/jobs?user=me&password=s3cret&sslmode=require',
    'postgres://db/jobs?user=me&password=***&sslmode=require',
  ],
  ['postgres://me:s3cret@db/jobs?PASSWORD=cret', 'postgres://me:***@db/jobs?PASSWORD=***'],
  ['postgres://db/jobs?pass%77ord=s3cret', 'postgres://db/jobs?pass%77ord=***'],
  ['postgres://db/jobs?sslpassword=s3cret', 'postgres://db/jobs?sslpassword=***'],
  ['postgres://me@db:5432/jobs?password=s3@cret', 'postgres://me@db:***'],
  ['postgres://me:s3?password=x@cret@db', 'postgres://me:***'],
  ['host=db user=me password=s3cret', 'host=db user=me password=***'],
  ['postgres://me@db:5432/jobs', 'postgres://me@db:5432/jobs'],
  ['postgres:///jobs?host=/var/run', 'postgres:///jobs?host=/var/run'],
]

test.for(shown)('%s is shown as %s', ([url, expected]) => {
  expect(withoutPassword(url)).toBe(expected)
  expect(withoutPassword(url)).not.toMatch(/s3|cret/)
})

test('in a text, every word that might be a URL is shown without its password', () => {
  expect(withoutPasswords("unknown option '--urlpostgres://me:s3cret@db/jobs' of jobs")).toBe(
    "unknown option '--urlpostgres:***@db/jobs' of jobs",
  )
})
