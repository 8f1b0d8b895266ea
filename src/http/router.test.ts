import { expect, test } from 'vitest'
import { makeRouter } from './router.ts'

const find = makeRouter([
  { method: 'GET', path: '/v1/jobs', target: 'list' },
  { method: 'POST', path: '/v1/jobs', target: 'submit' },
  { method: 'POST', path: '/v1/jobs/batch', target: 'batch' },
  { method: 'GET', path: '/v1/jobs/{id}', target: 'get' },
  { method: 'POST', path: '/v1/jobs/{id}/cancel', target: 'cancel' },
])

test('a whole path is found before one with parameters', () => {
  expect(find('POST', '/v1/jobs/batch')).toEqual({ target: 'batch', params: {} })
  expect(find('GET', '/v1/jobs/batch')).toEqual({ target: 'get', params: { id: 'batch' } })
  expect(find('POST', '/v1/jobs/a%2Fb/cancel')).toEqual({ target: 'cancel', params: { id: 'a/b' } })
})

test('HEAD finds what GET does, and a slash at the end changes nothing', () => {
  expect(find('HEAD', '/v1/jobs/')).toEqual({ target: 'list', params: {} })
})

test('a path that knows other methods says which, and any other is nothing', () => {
  expect(find('PUT', '/v1/jobs')).toEqual({ allowed: ['GET', 'POST'] })
  expect(find('DELETE', '/v1/jobs/x')).toEqual({ allowed: ['GET'] })
  for (const path of ['/', '', '/v1/jobs/x/y/z', '//v1/jobs', '/V1/jobs']) expect(find('GET', path)).toBeNull()
})

test('a parameter that is badly encoded is passed on as it is', () => {
  expect(find('GET', '/v1/jobs/%zz')).toEqual({ target: 'get', params: { id: '%zz' } })
})
