import { connectTimeoutMs } from '../postgres/connection.ts'
import type { EngineParts } from './parts.ts'

/** How long a loop that queries the database may make no progress: as long as any other loop, plus the time that one answer may take. */
export function patientMs({ url, config }: Pick<EngineParts, 'url' | 'config'>): number {
  return config.livenessMs + connectTimeoutMs(url) + config.statementTimeoutMs
}
