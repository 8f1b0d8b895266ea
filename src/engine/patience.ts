import { connectTimeoutMs } from '../store/connection.ts'
import type { EngineParts } from './engine.ts'

/** How long a loop that asks the database may not turn: as long as any other, and as one answer may take. */
export function patientMs({ url, config }: Pick<EngineParts, 'url' | 'config'>): number {
  return config.livenessMs + connectTimeoutMs(url) + config.statementTimeoutMs
}
