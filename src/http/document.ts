import { OpenAPIRegistry, OpenApiGeneratorV31 } from '@asteasolutions/zod-to-openapi'
import type { Config } from '../config/config.ts'
import { version } from '../config/version.ts'
import { type ErrorCode, errorCodes } from '../errors/errors.ts'
import { type Answer, isBodyOptional, type Operation } from './operation.ts'
import { operations } from './operations.ts'
import { problemSchema } from './problem.ts'
import type { z } from './zod.ts'

const about = `Durable jobs on Postgres: nothing gets stuck, nothing commits twice, nothing is lost.

Every error is a problem+json document with a stable \`code\`. Lists are paginated: pass \`next\` of one page as \`cursor\` of the next. Send \`X-Request-Id\` to find
your request in the logs, and \`traceparent\` to make a job part of your trace.`

const tags: Record<string, string> = {
  jobs: 'Submit jobs, read them, wait for results, cancel jobs, and re-run failed ones.',
  bulk: 'Change many jobs at once, and see failures by error.',
  events: 'Read the event log and manage the groups that consume it.',
  webhooks: 'Manage webhook endpoints and their deliveries.',
  schedules: 'Submit jobs by cron patterns or at intervals, and see what became of each slot.',
  work: 'Remote workers in any language: sessions, claims, heartbeats, outcomes.',
  operate: 'Queues, sessions and recovery.',
  keys: 'Manage API keys.',
}

/** Errors that every operation can return. */
const always: readonly ErrorCode[] = [
  'key_missing',
  'key_refused',
  'scope_missing',
  'tenant_forbidden',
  'host_refused',
  'request_invalid',
  'rate_limited',
  'internal',
  'not_running',
  'database_unreachable',
  'database_read_only',
  'database_timeout',
  'database_overloaded',
  'database_full',
]
const withBody: readonly ErrorCode[] = ['body_malformed', 'body_too_large', 'content_type_unsupported', 'not_storable']

/** The OpenAPI document of all operations, generated from the schemas that validate requests. */
export function apiDocument({ publicUrl }: Partial<Pick<Config, 'publicUrl'>> = {}): object {
  const registry = new OpenAPIRegistry()
  registry.registerComponent('securitySchemes', 'key', {
    type: 'http',
    scheme: 'bearer',
    description: 'An API key (`hf_…`), created with `holdfast keys create`.',
  })
  for (const one of operations) register(registry, one)
  return new OpenApiGeneratorV31(registry.definitions).generateDocument({
    openapi: '3.1.0',
    info: {
      title: 'Holdfast',
      version,
      description: about,
      license: { name: 'MIT', url: 'https://opensource.org/license/mit' },
    },
    servers: [{ url: publicUrl ?? '/' }],
    tags: Object.entries(tags)
      .filter(([name]) => operations.some(({ tag }) => tag === name))
      .map(([name, description]) => ({ name, description })),
  })
}

/** The type that the library expects: objects only, which all of our schemas are. */
type ObjectSchema = z.ZodObject

function register(registry: OpenAPIRegistry, one: Operation): void {
  registry.registerPath({
    method: one.method,
    path: one.path,
    operationId: one.id,
    tags: [one.tag],
    summary: one.summary,
    description: [one.about, `Requires the scope \`${one.scope}\`${one.isForAll ? ' and a key for all tenants' : ''}.`]
      .filter(Boolean)
      .join('\n\n'),
    security: [{ key: [] }],
    request: {
      ...(one.params ? { params: one.params as ObjectSchema } : {}),
      ...(one.query ? { query: one.query as ObjectSchema } : {}),
      ...(one.headers ? { headers: one.headers as ObjectSchema } : {}),
      ...(one.body
        ? { body: { required: !isBodyOptional(one), content: { 'application/json': { schema: one.body } } } }
        : {}),
    },
    responses: {
      ...Object.fromEntries(Object.entries(one.answers).map(([status, answer]) => [status, responseOf(answer)])),
      ...problemsOf(one),
    },
  })
}

function responseOf({ about: description, schema, type, headers }: Answer) {
  const content = schema
    ? { [type ?? 'application/json']: { schema } }
    : type
      ? { [type]: { schema: { type: 'string' as const } } }
      : undefined
  return {
    description,
    ...(content ? { content } : {}),
    ...(headers
      ? {
          headers: Object.fromEntries(
            Object.entries(headers).map(([name, text]) => [
              name,
              { description: text, schema: { type: 'string' as const } },
            ]),
          ),
        }
      : {}),
  }
}

function problemsOf(one: Operation) {
  const byStatus = new Map<number, ErrorCode[]>()
  for (const code of new Set([...(one.problems ?? []), ...(one.body ? withBody : []), ...always])) {
    const { status } = errorCodes[code]
    byStatus.set(status, [...(byStatus.get(status) ?? []), code])
  }
  return Object.fromEntries(
    [...byStatus]
      .filter(([status]) => !(status in one.answers))
      .map(([status, codes]) => [
        status,
        {
          description: codes.map((code) => `\`${code}\`: ${errorCodes[code].meaning}`).join('\n'),
          content: { 'application/problem+json': { schema: problemSchema } },
        },
      ]),
  )
}
