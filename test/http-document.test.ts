import { createConfig, lintFromString } from '@redocly/openapi-core'
import { expect, test } from 'vitest'
import { errorCodes } from '#holdfast/errors/errors'
import { docsPage } from '#holdfast/http/docs-page'
import { apiDocument } from '#holdfast/http/document'
import { operations } from '#holdfast/http/operations'
import { type ApiDocument, spotsOf } from './http/requests.ts'

const document = apiDocument() as ApiDocument
const spots = spotsOf(document)

/** The first column of what a list maps to that is there twice. */
function twice(all: readonly string[]): string[] {
  return all.filter((one, index) => all.indexOf(one) !== index)
}

test('the document lints clean', async () => {
  const config = await createConfig({ extends: ['recommended'] })
  const problems = await lintFromString({ source: JSON.stringify(document), absoluteRef: 'openapi.json', config })
  expect(problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} at ${location[0]?.pointer}`)).toEqual(
    [],
  )
})

test('the document has every operation, once', () => {
  const places = operations.map(({ method, path }) => `${method.toUpperCase()} ${path}`)
  expect(spots.map(({ method, path }) => `${method} ${path}`).toSorted()).toEqual(places.toSorted())
  expect(twice(operations.map(({ id }) => id))).toEqual([])
  // names of parameters do not tell paths apart
  expect(twice(places.map((place) => place.replace(/\{\w+\}/g, '{}')))).toEqual([])
})

test.for(spots.map((spot) => [spot.one.operationId, spot] as const))('%s is described', ([, { path, one }]) => {
  const { summary = '', description = '', tags = [], responses, parameters = [] } = one
  expect(summary).toMatch(/^[A-Z].+[^.]$/)
  expect(description).toMatch(/\.$/)
  expect(tags).toHaveLength(1)
  expect(document.tags.map(({ name }) => name)).toContain(tags[0])
  const statuses = Object.keys(responses).map(Number)
  expect(statuses.some((status) => status < 300)).toBe(true)
  expect(statuses).toEqual(expect.arrayContaining([401, 403, 422, 429]))
  const named = parameters.filter((parameter) => parameter.in === 'path').map(({ name }) => name)
  expect(named.toSorted()).toEqual([...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name).toSorted())
})

test.for(operations.map((one) => [one.id, one] as const))(
  'every error that %s tells of exists, and stands in the document',
  ([id, one]) => {
    expect((one.problems ?? []).filter((code) => !(code in errorCodes))).toEqual([])
    expect(twice([...(one.problems ?? [])])).toEqual([])
    const responses = spots.find((spot) => spot.one.operationId === id)?.one.responses ?? {}
    const untold = (one.problems ?? []).filter(
      (code) => !responses[errorCodes[code].status]?.description.includes(`\`${code}\``),
    )
    expect(untold).toEqual([])
  },
)

test('the docs for people show every operation and every schema, and run nothing', () => {
  const html = docsPage(document)
  const missing = spots.filter(
    ({ path, one }) => !html.includes(`id="${one.operationId}"`) || !html.includes(`<code>${path}</code>`),
  )
  expect(missing).toEqual([])
  expect(Object.keys(document.components.schemas).filter((name) => !html.includes(`id="schema-${name}"`))).toEqual([])
  expect(html).not.toMatch(/<script|\son\w+=|javascript:|src=|<link|@import|url\(/i)
  const anchors = [...html.matchAll(/href="#([^"]+)"/g)].map(([, anchor]) => anchor)
  expect(anchors.filter((anchor) => !html.includes(`id="${anchor}"`))).toEqual([])
})
